"""The shape of oh-my-pi's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import PromptPlace, PromptShape, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def prompt_place(payload: "Mapping[str, Any]", _: object) -> PromptPlace | None:
    """Return the session; the extension starts a hook with --prompts only for one at a terminal."""
    session_id, directory, title = (payload.get(key) for key in ("session", "directory", "title"))
    if not session_id or not isinstance(session_id, str):
        return None
    return PromptPlace(session_id, str(directory or ""), str(title or ""))


# A payload asks if it has questions; another one is news of a turn. No key is in both for certain.
SHAPE = Shape(
    {},
    ("questions", "turn", "began", "stopped", "left", "session", "directory", "title", "context", "headless"),
    lambda payload: "questions" in payload,
    has_desk=lambda payload: not payload.get("headless"),
    prompts=PromptShape(prompt_place, stays=True),
)
