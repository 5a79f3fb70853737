"""What an agent asks: questions or one permission, and where the ask comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Option:
    """One choice: `label` is what the agent gets back, to the letter."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of an ask. `recommended` is an index into `options`, or None."""

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    custom: bool = True
    recommended: int | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent can do; the dialog and the words on the phone read this and nothing else about it.

    `reports` is false where nobody is sure to tell what became of an answer: that it was handed over, and
    `silence_s` seconds without another word, is all there is to know then; `tells_answers` where it does tell of the
    answers to questions, so that of those silence proves nothing. `else_first`: where nothing is recommended,
    its own timer takes the first option.
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


@dataclass(frozen=True, slots=True)
class Source:
    """Where an ask comes from. `server` is the configured name of the server that listed it, else "".

    `machine` is the machine's id, and never changes; `host` is its name for people, "" if nobody told it.
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
    last_text: str = ""
    server: str = ""
    host: str = ""


OnExpiry = Literal["reject", "recommended", "skip", "keep"]

DeedKind = Literal["command", "change", "folder", "fetch", "other"]


@dataclass(frozen=True, slots=True)
class Permission:
    """What an agent may not do without a word, and asks for.

    `tool` is the agent's own name of what it uses ("bash"); `what` is the deed itself and whole: a command, the name
    of a file, an address; `detail` is more of it (a diff, the command behind a folder). `patterns` is what it asks
    for as the agent puts it, `always` what "always" would cover: empty where that is not offered. `partial` is true
    where the agent has told only parts of the deed.

    Its ask has one question of one option (allow once); a free text is a refusal that says why. The answers that an
    agent tells of are (("once",),), (("always",),), (("allowed",),) where nobody knows which of the two, and
    (("refused", why),) with an empty `why` for none, without any where that is not known.
    """

    tool: str
    kind: DeedKind
    what: str
    detail: str = ""
    patterns: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for input. `answerable` is false where only the desk can answer (the words say so).

    `ttl_s` and `on_expiry` are the asker's own, None where the configuration's count. `given` is what its adapter keeps
    of the payload to answer in the agent's form, and nobody else reads.
    """

    source: Source
    questions: tuple[Question, ...]
    capabilities: Capabilities
    answerable: bool = True
    permission: Permission | None = None
    ttl_s: float | None = None
    on_expiry: OnExpiry | None = None
    given: str = ""
