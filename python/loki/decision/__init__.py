"""What may be tried next, and when: pure, clocks injected."""
