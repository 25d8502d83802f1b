"""Gates that look at more than one kind of fault, and what they know."""
