"""What decides whether a task is done, and which of it a task's work has touched."""
