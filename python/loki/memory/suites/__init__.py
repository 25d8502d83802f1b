"""Runs of test suites, kept."""
