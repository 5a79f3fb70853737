"""`hermes doctor`: check everything that must be right so that a question reaches the phone and an answer comes back.

Each area is a few checks that return findings and never raise. `checkup` runs all areas at once, each with a time
limit, and `report` prints the findings. A check that needs a broken one is left out; most areas say so in one line.
"""
