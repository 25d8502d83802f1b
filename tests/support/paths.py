"""Where the repository is, for tests that read what is not in the package."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
