"""The shape of oh-my-pi's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import Shape

SHAPE = Shape(
    {"questions": list},
    ("questions", "session", "directory", "title", "context", "headless"),
    lambda _: True,
    has_desk=lambda payload: not payload.get("headless"),
)
