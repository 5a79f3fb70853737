"""A prompt: a text that a person sends from the phone to a session of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.answer import User
from hermes.model.ask import Source
from hermes.model.files import Attachment, FileKind
from hermes.model.state import Part

ContentKind = Literal["text", "note", "task", "command"]
"""The kinds of a prompt.

- "text": the agent answers it.
- "note": the agent reads it with the next prompt, and does not answer it.
- "task": a subagent does it.
- "command": it runs a command that the project defines.
"""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a prompt. `name` is the subagent of a task, or the name of a command; `text` its arguments.

    `text` may be "" if there are files.
    """

    kind: ContentKind
    text: str
    name: str = ""
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptAbilities:
    """The abilities of an agent with prompts. The machine and the screens read these and not the name of the agent.

    - `kinds`: the kinds of content that it takes. `files`: the kinds of files that it takes beside a text.
    - `steers`: it takes a prompt while a turn runs, at the next step of that turn.
    - `holds`: a prompt that it was given while a turn runs waits for the next step of that turn, untold until then.
    - `stops`: it can be told to end the turn that runs.
    - `makes_sessions`: it can begin a new session.
    - `no_session`: the session id of an ask that belongs to no session, so that nothing can be sent there; "": it has
      none.
    - `resumes`: the command that opens a session in a terminal; the id of the session follows it. "": none is known.
    """

    kinds: tuple[ContentKind, ...] = ("text",)
    steers: bool = False
    stops: bool = False
    makes_sessions: bool = False
    resumes: str = ""
    files: tuple[FileKind, ...] = ()
    holds: bool = False
    no_session: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The session that a prompt is for: its source without the ids of a request, and its agent.

    `source.session_id` is "" for a session that is still to be made, in `source.directory`.
    """

    source: Source
    agent_name: str
    can: PromptAbilities


SessionState = Literal["idle", "busy", "gone"]
RecordState = Literal["absent", "waiting", "admitted", "running", "finished", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at a session, and at a prompt in the agent's own record.

    - `record`: "absent": the record does not have the prompt. "waiting": it lies ready, and the agent has not taken it
      yet. "admitted": it has the prompt, and no turn answers it
      yet. "running": a turn answers it. The rest: how that turn ended.
    - `next_id`: an id for the record, for a prompt that is sent now.
    - `tool`: the tool that runs now, "" if none. `reason`: why the turn failed. `ended_s`: when it ended (epoch).
    - `is_own`: the process that was asked has worked on the session itself, and is not only able to. Of a session that
      is gone: the process that had worked on it has ended.
    """

    session: SessionState
    record: RecordState = "absent"
    next_id: str = ""
    tool: str = ""
    reason: str = ""
    ended_s: float | None = None
    is_own: bool = False


PromptPhase = Literal[
    "unaddressed", "queued", "sending", "admitted", "running", "finished", "failed", "stopped", "withdrawn"
]  # fmt: skip
"""The phase of a prompt; `core.prompts` has the rules."""

StopPhase = Literal["", "sure", "asked", "told", "refused"]
"""The person was not asked yet, is asked for a second tap, wants the stop; the agent was told, or could not be."""


@dataclass(frozen=True, slots=True)
class PromptLine:
    """The message about a prompt, below the person's text.

    `chat_id` is its chat; None: that of the text, which it leaves if the group becomes a supergroup.
    `drawn` is the digest of the screen that it shows since `drawn_s` (epoch), `is_running` and `is_over` whether that
    screen shows a turn that runs, or the end of the prompt.
    """

    message_id: int | None = None
    chat_id: int | None = None
    drawn: str = ""
    drawn_s: float = 0.0
    is_running: bool = False
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with all that must survive a crash. Times are epoch seconds.

    - `parts`: the messages of the person. `due_s`: further parts of a split text or an album may come until then.
    - `target`: None until the person has chosen one of `choices`.
    - `about`: the question that this prompt answers too late, "" if none.
    - `is_edited`: the person has changed the text.
    - `agreed_s`: when the person agreed with the words of its voice note; 0 without one.
    - `starts_until_s`: it starts by itself until then; later only if the person says so.
    - `is_hurried`: the person wants it sent although a turn runs, or other prompts wait.
    - `record_id`: its id in the agent's record, which Hermes makes; "" until it is sent.
    - `tries`, `tried_s`: how often it was sent, and the last time. `is_accepted`: the agent accepted the last one.
    - `is_clear`: looks since the last try have shown that the agent's record does not have it.
    - `began_s`, `ended_s`: when its turn was seen to begin and to end; None if nobody saw that.
    - `seen_s`: the last look that changed something.
    - `quiet_s`: since then each look has shown neither a turn that answers it nor its end; None: the last look did.
    - `is_away`: the agent could not be reached at the last look.
    - `tool`, `reason`: the tool that its turn uses now, and why it failed, or was not sent.
    - `thread_id`: the topic in which the person wrote it, or wished for it; 0 if in none.
    - `again_of`: the prompt that failed before and is sent again with this one.
    - `revision`: grows with each write.
    """

    id: str
    user: User
    chat_id: int
    parts: tuple[Part, ...]
    asked_s: float
    phase: PromptPhase = "unaddressed"
    due_s: float | None = None
    target: Target | None = None
    choices: tuple[Target, ...] = ()
    about: str = ""
    is_edited: bool = False
    starts_until_s: float = 0.0
    is_hurried: bool = False
    record_id: str = ""
    tries: int = 0
    tried_s: float = 0.0
    is_accepted: bool = False
    is_clear: bool = False
    began_s: float | None = None
    ended_s: float | None = None
    seen_s: float = 0.0
    quiet_s: float | None = None
    is_away: bool = False
    tool: str = ""
    reason: str = ""
    stop: StopPhase = ""
    again_of: str = ""
    line: PromptLine = PromptLine()
    revision: int = 0
    agreed_s: float = 0.0
    thread_id: int = 0

    @property
    def machine(self) -> str:
        """The id of the machine of its session, "" without a session."""
        return "" if self.target is None else self.target.source.machine

    @property
    def line_place(self) -> tuple[int, int | None]:
        """The chat and the message of its line."""
        return self.line.chat_id or self.chat_id, self.line.message_id
