"""The soak: one listener for a long time, thousands of asks of all agents, light trouble; nothing grows with them.

`make soak` runs the long form; `python -m tests.soak --help` says what can be chosen.
"""
