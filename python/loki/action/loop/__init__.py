"""The closed loop: a pure machine, its driver, and what it is told and asks for."""
