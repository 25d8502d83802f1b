"""Signals joined with those who act on them: what `loki signals`, `loki work` and `loki tick` run.

`signal_handling` finds what waits, calls the one consumer of each kind, and says at once when there is
something new. Why it is so: ``docs/design/signals.md``.
"""
