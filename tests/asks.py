"""Small asks and entries that many tests use."""

from __future__ import annotations

from dataclasses import replace

from hermes.model.answer import User
from hermes.model.ask import Ask, Capabilities, Option, Permission, Question, Source
from hermes.model.entry import Entry, Phone
from hermes.model.state import State

OPENCODE = Capabilities(agent_name="OpenCode")
ANN, BOB = User(11, "Ann"), User(22, "Bob")
CHAT_ID = 11


def question(
    text: str = "Which database should I use?",
    labels: tuple[str, ...] = ("PostgreSQL", "SQLite", "Redis"),
    *,
    header: str = "Database",
    multiple: bool = False,
    custom: bool = True,
    recommended: int | None = None,
) -> Question:
    """Return a question with these labels."""
    options = tuple(Option(label, f"about {label}") for label in labels)
    return Question(text, header, options, multiple, custom, recommended)


def ask(*questions: Question, capabilities: Capabilities = OPENCODE, answerable: bool = True) -> Ask:
    """Return an ask of a known session."""
    source = Source(
        agent="opencode",
        machine="laptop",
        session_id="ses_1",
        directory="/home/dev/shop-api",
        request_id="que_1",
        session_title="Fix login flow",
    )
    return Ask(source, questions, capabilities, answerable)


def permission_ask(
    what: str = "npm run build",
    *,
    always: tuple[str, ...] = ("npm run *",),
    patterns: tuple[str, ...] = (),
    **more: str,
) -> Ask:
    """Return a permission request for a command."""
    allowing = Question("May it?", what, (Option("Allow once"),))
    made = ask(allowing, capabilities=Capabilities(agent_name="OpenCode", can_skip=False))
    asked = Permission("bash", "command", what, more.get("detail", ""), patterns or (what,), always)
    return replace(made, source=replace(made.source, request_id=more.get("request_id", "per_1")), permission=asked)


def entry(an_ask: Ask, state: State, *, entry_id: str = "e1", code: str = "k7", message_id: int = 500) -> Entry:
    """Return an entry that is on the phone."""
    return Entry(entry_id, code, an_ask, state, Phone(CHAT_ID, message_id), asked_s=1000.0)
