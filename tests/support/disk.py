"""Where tests that write much put their files."""

import os

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A file system in memory, for ``tempfile``'s ``dir``, where putting on disk costs nothing; or None."""
