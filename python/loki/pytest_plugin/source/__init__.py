"""What the source of failing tests says that pytest does not print; read only after a failure."""
