"""The shape of the payloads of `hermes hook generic`, for the hook. Uses only the standard library."""

from hermes.hook.shape import Shape

SHAPE = Shape(
    {"questions": list},
    ("questions", "agent", "title", "directory", "context", "ttl_s", "on_expiry", "stops", "stays"),
    lambda _: True,
    by_hand=True,
)
