"""Checks: the criteria that decide whether a task is done, and what became of each test."""
