"""Work that waits: the queue of tasks."""
