"""Commands: run, bounded, boxed in, with nothing left running afterwards."""
