"""What a run of a test suite comes to, beside the runs before it: pure."""
