"""Pipelines: stages round the closed loop, as a pure machine."""
