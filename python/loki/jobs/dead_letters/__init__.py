"""The dead letters of a project, joined: how they come into the queue's list, and what a review does."""
