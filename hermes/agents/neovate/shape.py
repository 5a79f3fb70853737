"""The shape of Neovate Code's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import Shape

SHAPE = Shape(
    {"questions": list},
    ("questions", "session", "directory", "title", "context"),
    lambda _: True,
    has_desk=lambda _: True,
)
