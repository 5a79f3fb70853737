"""The shape of the payloads of `hermes hook generic`, as its hook reads them. Standard library alone."""

from hermes.hook.shape import Shape

SHAPE = Shape(
    {"questions": list},
    ("questions", "agent", "title", "directory", "context", "ttl_s", "on_expiry", "stops", "stays"),
    lambda _: True,
    by_hand=True,
)
