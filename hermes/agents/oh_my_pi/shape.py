"""The shape of the payloads of oh-my-pi, as its hook reads them. Standard library alone."""

from hermes.hook.shape import Shape

SHAPE = Shape(
    {"questions": list},
    ("questions", "session", "directory", "title", "context", "headless"),
    lambda _: True,
    has_desk=lambda payload: not payload.get("headless"),
)
