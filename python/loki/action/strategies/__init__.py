"""The strategies, one to a file; ``loki.action.strategy`` has the table of them."""
