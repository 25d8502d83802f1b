"""Tasks worked on in copies of the project, and landed in it: the join behind ``loki work``."""
