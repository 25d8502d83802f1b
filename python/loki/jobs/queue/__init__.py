"""Work that waits: the queue of tasks, and tasks that come round again."""
