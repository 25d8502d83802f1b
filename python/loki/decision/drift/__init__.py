"""Whether a proposal touches what its task is about: pure."""
