"""Everything that waits for a person, joined: what it is, how it is answered, and what follows."""
