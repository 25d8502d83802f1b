"""The strategies, one to a file; ``loki.action.strategies.strategy`` has the table of them."""
