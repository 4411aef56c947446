"""The soak: agents, operators and faults for minutes, and a checker that reads the whole history afterwards."""
