"""What was tried: attempts, signs, dead letters."""
