"""The shape of the payloads of Neovate Code, as its hook reads them. Standard library alone."""

from hermes.hook.shape import Shape

SHAPE = Shape(
    {"questions": list},
    ("questions", "session", "directory", "title", "context"),
    lambda _: True,
    has_desk=lambda _: True,
)
