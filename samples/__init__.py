"""Real output of real tools, made anew: where the samples of the tool files come from."""
