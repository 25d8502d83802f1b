"""Hooks of command-line agents: what each says to loki and is told, and how they are installed."""
