"""The fault suite: real processes, seeded trouble, and laws that hold after each round.

`make faults` runs the long form; `python -m tests.faults --help` says what can be chosen. A round is told apart by
its seed and its number, and the same two bring the same asks, acts and faults again.
"""
