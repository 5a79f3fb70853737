"""The request of an agent, with its questions or its one permission, and its origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Option:
    """One choice. The agent gets exactly `label` as the answer, never a shortened one."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of an ask.

    `multiple`: several options can be chosen; `custom`: a free text is allowed. `recommended` is an index into
    `options`, or None.
    """

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    custom: bool = True
    recommended: int | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of an agent. The dialog, the screens and the delivery read these and not the name of the agent.

    - `agent_name`: its name for people.
    - `reject_stops`: a reject ends the agent's turn; else the agent is told no, and goes on.
    - `can_skip`: the person can skip the ask, and the agent then decides.
    - `notes`: a text beside chosen options reaches the agent as a note. Nothing reads this field.
    - `desk_stays_open`: the ask can also be answered at the desk, and stays there when its time on the phone is over.
    - `reports`: the agent is certain to report the effect of an answer. If false, the answer counts as delivered once a
      hook has printed it and `silence_s` seconds have passed without a report.
    - `tells_answers`: although `reports` is false, the agent reports the answers to questions (not to permissions), so
      that its silence proves nothing about those.
    - `hears_reason`: the agent's model reads the reason of a refusal.
    - `always_stays`: an "always" is kept for the project, which all copies of a repository are; else it holds until the
      agent restarts.
    - `post_after_s`: the agent may take back an ask that is younger than this, so it is not posted before.
    - `gives_up_after_s`: the agent may end a turn in which nothing happened for so long, and its asks; 0: it does not.
    - `else_first`: the agent's own timer takes the first option if no option is recommended.
    """

    agent_name: str
    reject_stops: bool = True
    can_skip: bool = True
    notes: bool = False
    desk_stays_open: bool = True
    reports: bool = True
    silence_s: float = 0.0
    tells_answers: bool = False
    else_first: bool = False
    hears_reason: bool = True
    always_stays: bool = False
    post_after_s: float = 0.0
    gives_up_after_s: float = 0.0


def folder_name(directory: str) -> str:
    """Return the name of a folder without those above it, "" if it has none."""
    return _with_slashes(directory).rpartition("/")[2]


def _with_slashes(directory: str) -> str:
    """Return a path without a slash at its end. A backslash parts folders on Windows; else it is part of a name."""
    return (directory if directory.startswith("/") else directory.replace("\\", "/")).rstrip("/")


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of an ask.

    - `agent`: the name of the adapter. `machine`: the id of the machine, which never changes. `host`: the name of the
      machine for people, "" if it is not known.
    - `server`: the name in the configuration of the server that sent or listed the ask, or "".
    - `request_id`, `call_id`, `message_id`: the agent's ids of the request, of the tool call that asks, and of the
      message with that call, or of its turn; None if not known. The request id, or the call id within its session,
      identifies the ask.
    - `session_title`, `root_title`: the title of the session and, for a subagent, that of its root session, whose id is
      `root_id`.
    - `last_text`: the last words of the agent before it asked.
    """

    agent: str
    machine: str
    session_id: str
    directory: str = ""
    request_id: str | None = None
    call_id: str | None = None
    message_id: str | None = None
    session_title: str = ""
    root_title: str = ""
    root_id: str = ""
    last_text: str = ""
    server: str = ""
    host: str = ""

    @property
    def session(self) -> tuple[str, str, str]:
        """The identity of its session. Two machines have the same session ids if a home folder was copied."""
        return self.agent, self.machine, self.session_id

    def is_in(self, projects: Sequence[str]) -> bool:
        """Tell whether its folder is one of `projects`, each a whole path or the name of a folder."""
        names = {_with_slashes(self.directory), folder_name(self.directory)} - {""}
        return any(names & {one.rstrip("/"), _with_slashes(one)} for one in projects)


OnExpiry = Literal["reject", "recommended", "skip", "keep"]
"""The rule for an ask that no person answered in time. "keep" leaves it to the desk."""

PermissionKind = Literal["command", "change", "folder", "fetch", "other"]
"""The kind of an action: run a command, change a file, use a folder outside of the project, fetch an address, other."""


@dataclass(frozen=True, slots=True)
class Permission:
    """An action that the agent may do only with a person's permission.

    - `tool`: the tool that the agent wants to use, by the agent's own name ("bash").
    - `what`: the whole action: a command, the name of a file, an address.
    - `detail`: more about the action, such as a diff, or the command that uses a folder.
    - `patterns`: the action in the agent's own notation.
    - `always`: the patterns that "always" would allow; empty if "always" is not offered.
    - `partial`: the agent has told only parts of the action.

    The ask of a permission has one question with one option (allow once). A free text refuses, and is the reason. What
    its agent is told is a `Reply`.
    """

    tool: str
    kind: PermissionKind
    what: str
    detail: str = ""
    patterns: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of an agent for input: questions, or one permission.

    - `answerable`: false if only the desk can answer; the message on the phone then says so.
    - `ttl_s`, `on_expiry`: the time to answer and the rule at its end, if this ask brings its own. None means the
      values of the configuration.
    - `given`: a part of the payload that the adapter needs to write the answer. Only the adapter reads it.
    - `nobody_there`: the agent knows that nobody is at the desk, so that the ask does not wait for anybody there.
    """

    source: Source
    questions: tuple[Question, ...]
    capabilities: Capabilities
    answerable: bool = True
    permission: Permission | None = None
    ttl_s: float | None = None
    on_expiry: OnExpiry | None = None
    given: str = ""
    nobody_there: bool = False
