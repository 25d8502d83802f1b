"""Adapters to what others use; each needs an extra of its own."""
