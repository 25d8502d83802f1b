"""Acting it out: the closed loop, changes to the project, checks, strategies."""
