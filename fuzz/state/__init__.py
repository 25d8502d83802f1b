"""Damages what loki has written into ``.loki/``, and looks at it through every face: `python -m fuzz.state`."""
