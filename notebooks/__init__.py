"""Notebooks that are read and run; `python -m notebooks` executes them and writes what came out."""
