"""What looks at the project itself."""
