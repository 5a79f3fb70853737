"""The shape of oh-my-pi's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import Shape

# A payload asks if it has questions; another one is news, the end of a turn. No key is in both for certain.
SHAPE = Shape(
    {},
    ("questions", "turn", "session", "directory", "title", "context", "headless"),
    lambda payload: "questions" in payload,
    has_desk=lambda payload: not payload.get("headless"),
)
