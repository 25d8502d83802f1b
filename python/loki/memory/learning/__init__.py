"""What loki would like to learn, for a person to decide on."""
