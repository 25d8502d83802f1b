"""Triage of recurring tasks that keep failing."""
