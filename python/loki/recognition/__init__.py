"""What failed, and is it the same as before: pure, text in and plain data out."""
