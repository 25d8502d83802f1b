"""What a project depends on: what its manifests require, what is installed, and how that compares."""
