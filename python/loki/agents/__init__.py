"""Agents that ship with loki: command lines, and scripted ones for demos and tests."""
