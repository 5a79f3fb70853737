"""The shape of Claude Code's payloads, for the hook. Uses only the standard library."""

from hermes.hook.shape import Shape

ASKS = frozenset({"PermissionRequest", "PreToolUse"})
CARRIED = (
    "session_id", "agent_id", "prompt_id", "cwd", "hook_event_name", "tool_name", "tool_input",
    "last_assistant_message", "error",
)  # fmt: skip
SHAPE = Shape(
    {"hook_event_name": str, "session_id": str},
    CARRIED,
    lambda payload: payload["hook_event_name"] in ASKS,
    has_desk=lambda payload: payload["hook_event_name"] == "PermissionRequest",
)
