"""``pytest --loki``: failures grouped by root cause, and what is known of each."""
