"""Rivals of `benchmarks.calls`: in a folder of its own, as a script sees what stands beside it."""
