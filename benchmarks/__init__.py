"""What loki's speed is, measured side by side with named peers; see README.md."""
