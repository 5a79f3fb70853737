"""The shape of Claude Code's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import PromptPlace, PromptShape, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ASKS = frozenset({"PermissionRequest", "PreToolUse"})
CARRIED = (
    "session_id", "agent_id", "prompt_id", "cwd", "hook_event_name", "tool_name", "tool_input",
    "last_assistant_message", "error",
)  # fmt: skip
WAKE_SUMMARY = "A prompt from your phone, through Hermes"
"""What the terminal shows above the agent's answer; it does not show the prompt."""
WAKE_MESSAGE = "The user wrote this prompt on their phone, and sent it here with Hermes:"
"""What the model reads before the prompt."""


def prompt_place(payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> PromptPlace | None:
    """Return the session of a Claude Code in a terminal; without one it would wait for the hook, and not end."""
    is_at_desk = environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0"
    if not is_at_desk or payload.get("agent_id") is not None:
        return None
    directory, record = (str(payload.get(key) or "") for key in ("cwd", "transcript_path"))
    begins = payload["hook_event_name"] == "SessionStart"
    return PromptPlace(payload["session_id"], directory, record=record, begins=begins)


def adds(payload: "Mapping[str, Any]") -> dict[str, bool]:
    """Return that a prompt from the phone began this turn, if one did. The text that a person typed is not kept."""
    is_ours = WAKE_MESSAGE in str(payload.get("prompt") or "")
    return {"from_phone": True} if is_ours and payload["hook_event_name"] == "UserPromptSubmit" else {}


SHAPE = Shape(
    {"hook_event_name": str, "session_id": str},
    CARRIED,
    lambda payload: payload["hook_event_name"] in ASKS,
    has_desk=lambda payload: payload["hook_event_name"] == "PermissionRequest",
    prompts=PromptShape(
        "status",
        prompt_place,
        ends_session=lambda payload: payload["hook_event_name"] == "SessionEnd",
        adds=adds,
    ),
)
