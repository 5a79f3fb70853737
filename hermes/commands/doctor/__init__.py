"""`hermes doctor`: everything that must be right so that a question reaches the phone and an answer comes back.

One module an area, each a few checks that return findings and never raise; `checkup` runs them all at once, each
within its time, and `report` tells them. A check that depends on a broken one says so in one line.
"""

from hermes.commands.doctor.checkup import examine, visit
from hermes.commands.doctor.trial import ask

__all__ = ["ask", "examine", "visit"]
