"""The gates: each judges a proposal by its content, before a byte of the project changes."""
