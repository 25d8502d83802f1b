"""The monitor of an agent's tool calls, joined with a project: sessions, model calls, the monitor."""
