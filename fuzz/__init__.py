"""Hostile input: libFuzzer targets of the core, and `fuzz.state` for what `.loki/` may hold."""
