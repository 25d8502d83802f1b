"""Whether an agent with a loop of its own repeats itself, claims, strays: pure."""
