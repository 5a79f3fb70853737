"""The shape of OpenCode's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import Shape

OPENING = frozenset({"question.asked", "question.v2.asked", "permission.asked", "tool.execute.before"})
SHAPE = Shape(
    {"type": str, "properties": dict, "directory": str, "context": dict},
    None,
    lambda payload: payload["type"] in OPENING,
    needs_listener=lambda payload: payload["type"] == "turn.ended",
    calls=True,
)
