"""One task or pipeline, from its specification to its outcome."""
