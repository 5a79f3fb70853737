"""The shape of Claude Code's payloads, for the hook. Uses only the standard library."""

# ruff: noqa: PTH110 (pathlib would cost as much as json does)

import os
import time

from hermes.hook.shape import PromptPlace, PromptShape, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TOOL = "AskUserQuestion"
ASKING, BEFORE = "PermissionRequest", "PreToolUse"
ASKS = frozenset({ASKING, BEFORE})
ENDS = frozenset({"Stop", "StopFailure"})
CARRIED = (
    "session_id", "agent_id", "prompt_id", "cwd", "hook_event_name", "tool_name", "tool_input",
    "last_assistant_message", "error",
)  # fmt: skip
WAKE_SUMMARY = "A prompt from your phone, through Hermes"
"""What the terminal shows above the agent's answer; it does not show the prompt."""
WAKE_MESSAGE = "The user wrote this prompt on their phone, and sent it here with Hermes:"
"""What the model reads before the prompt."""
_BY_ITSELF = "<task-notification>"
"""So begins the prompt of a turn that Claude Code begins by itself: a task or a hook in the background has ended."""


def prompt_place(payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> PromptPlace | None:
    """Return the session of a Claude Code in a terminal; without one it would wait for the hook, and not end."""
    is_at_desk = environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0"
    if not is_at_desk or payload.get("agent_id") is not None:
        return None
    directory, record = folder_of(payload, environ), _record(payload)
    begins = payload["hook_event_name"] == "SessionStart"
    resumed = begins and payload.get("source") == "resume"
    return PromptPlace(payload["session_id"], directory, _title(payload), record, begins=begins, resumed=resumed)


def folder_of(payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> str:
    """Return the folder in which Claude Code was started, if `cwd` is below it: `cwd` follows each `cd` of the agent.

    Claude Code tells it to its hooks, whatever the settings of a project say (seen with 2.1.330).
    """
    now, first = str(payload.get("cwd") or ""), environ.get("CLAUDE_PROJECT_DIR", "").rstrip("/")
    return first if first and now.startswith(f"{first}/") else now


def adds(payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> "dict[str, Any]":
    """Return what the hook knows beyond the payload, see `adapter`. The text that a person typed is not kept."""
    event = payload["hook_event_name"]
    found: dict[str, Any] = {}
    if (folder := folder_of(payload, environ)) != (payload.get("cwd") or ""):
        found["cwd"] = folder
    prompt = str(payload.get("prompt") or "") if event == "UserPromptSubmit" else ""
    if WAKE_MESSAGE in prompt:
        found["from_phone"] = True
    elif prompt.startswith(_BY_ITSELF):
        found["goes_on"] = True
    if event in ASKS | ENDS and is_nobody_there(environ):
        found["nobody_there"] = True
    if event in ASKS | ENDS and (title := _title(payload)):
        found["title"] = title
    if event in ENDS and 0 < (began_s := _began_s(payload)) <= time.time():
        found["began"] = began_s * 1000
    return found


def _began_s(payload: "Mapping[str, Any]") -> float:
    """Return when the turn that ends began (epoch), 0 if the record of its session does not tell."""
    from hermes.agents.claude_code.transcript import began_at  # noqa: PLC0415 (only the end of a turn needs it)

    prompt_id = payload.get("prompt_id")
    return began_at(_record(payload), prompt_id) or 0.0 if isinstance(prompt_id, str) else 0.0


def _title(payload: "Mapping[str, Any]") -> str:
    """Return the title of the session, of a subagent that of its root session; "" if the record does not tell."""
    from hermes.agents.claude_code.transcript import title_of  # noqa: PLC0415 (the news of a call does not need it)

    return title_of(_record(payload))


def _record(payload: "Mapping[str, Any]") -> str:
    """Return the path of Claude Code's own record of the session, "" if it is not told."""
    path = payload.get("transcript_path")
    return path if isinstance(path, str) else ""


def is_nobody_there(environ: "Mapping[str, str]") -> bool:
    """Tell whether the person's mark is missing, which a program of theirs removes when they lock the screen.

    Claude Code itself only looks whether the file exists. A project can set the variable, too: at most it then lets an
    ask wait for the desk as it would without a mark.
    """
    mark = environ.get("CLAUDE_CLIENT_PRESENCE_FILE", "").strip()
    return bool(mark) and not os.path.exists(mark)


SHAPE = Shape(
    {"hook_event_name": str, "session_id": str},
    CARRIED,
    lambda payload: payload["hook_event_name"] in ASKS,
    has_desk=lambda payload: payload["hook_event_name"] == "PermissionRequest",
    prompts=PromptShape(
        prompt_place,
        ends_session=lambda payload: payload["hook_event_name"] == "SessionEnd",
        adds=adds,
    ),
)
