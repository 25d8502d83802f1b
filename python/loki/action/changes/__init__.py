"""The project's files: trees, changes, the journal that applies and undoes them, git, copies."""
