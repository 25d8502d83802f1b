"""Asking a person."""
