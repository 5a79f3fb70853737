"""`log` tells what was asked and answered: by whom, where, in which exact words, and how that is known."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len
from rich.console import Console

from hermes.agents.questions import with_permission
from hermes.commands.log.history import Exchange, gather, since_of, to_json
from hermes.commands.log.paragraphs import remark, show
from hermes.errors import ConfigError
from hermes.model.answer import Allowed, Answer, Decision, Once, Outcome, OutcomeKind, Refused, Response, User
from hermes.model.ask import Option, Permission, Question
from hermes.model.entry import Entry
from hermes.model.state import State
from hermes.storage.files import FileStore
from tests.at_once import at_once
from tests.listening import House, house, question, until
from tests.storage.store_process import an_entry
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path

ASKED_S = 1_757_000_000.0
ENDED_S = ASKED_S + 125
ANN = User(4711, "Ann")
DATABASE = Question(
    "Which database should I use?",
    "Database",
    (Option("PostgreSQL"), Option("SQLite (Recommended)"), Option("S, M\nand L")),
)
COLOUR = an_entry().ask.questions[0]
COMMAND = "npm publish --access public"
PUBLISH = Permission("bash", "command", COMMAND, patterns=("npm publish",), always=("npm publish *", "npm *"))
SQLITE = Decision("answer", ASKED_S + 60, (Answer((1,)),), ANN)
home = house("new")


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """An open store."""
    store = a_store(tmp_path / "store", now=lambda: ENDED_S + 5)
    at_once(store.open())
    return store


def an_ask(*questions: Question, permission: Permission | None = None, decision: Decision | None = None) -> Entry:
    """An ask as it stands: on its way, where something was decided."""
    entry = an_entry(asked_s=ASKED_S)
    source = replace(entry.ask.source, session_title="Fix login", root_title="Shop")
    ask = replace(entry.ask, questions=questions or (DATABASE,), source=source)
    ask = ask if permission is None else with_permission(ask, permission)
    state = State("open" if decision is None else "sending", answers=tuple(Answer() for _ in ask.questions))
    return replace(entry, ask=ask, state=replace(state, decision=decision))


def ended(entry: Entry, kind: OutcomeKind, **more: Any) -> Entry:
    """The ask when it is over."""
    outcome = Outcome(kind, ENDED_S, **more)
    return replace(entry, state=replace(entry.state, phase="settled", outcome=outcome))


def settled(store: FileStore, *entries: Entry) -> None:
    """Put them away as done."""
    for entry in entries:
        at_once(store.create(entry))
        at_once(store.settle(entry.id))


def told(store: FileStore, entry: Entry) -> Exchange:
    """What is told of this one."""
    settled(store, entry) if entry.state.outcome is not None else at_once(store.create(entry))
    (exchange,) = at_once(gather(store, since_s=0)).exchanges
    return exchange


def shown(*exchanges: Exchange, width: int = 100, terminal: bool = True) -> list[str]:
    """What a person reads."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=terminal, highlight=False)
    show(exchanges, console, zone=UTC)
    return out.getvalue().splitlines()


# --- for people -----------------------------------------------------------------------------------------------------

BY_ANN = "  Ann (4711) on the phone, after 2 min, seen in the agent's own record"
LEFT = replace(SQLITE, kind="release", answers=(), by=None)

ENDS = [
    (ended(an_ask(decision=SQLITE), "answered", proof="record"), ["✓ “SQLite (Recommended)”", BY_ANN]),
    (
        ended(an_ask(decision=replace(SQLITE, answers=(Answer((), "Duck\nDB"),))), "answered", proof="accepted"),
        ["✓ “Duck⏎DB”", "  Ann (4711) on the phone, after 2 min, the agent took it, and shows no record of it"],
    ),
    (
        ended(an_ask(decision=replace(SQLITE, kind="reject", answers=())), "rejected", proof="record"),
        ["✗ told to stop", BY_ANN],
    ),
    (
        ended(an_ask(decision=replace(SQLITE, kind="skip", answers=())), "skipped", proof="record"),
        ["✓ left to decide by itself", BY_ANN],
    ),
    (
        ended(an_ask(), "answered_at_desk", answers=(("PostgreSQL", "and more"),), proof="event"),
        ["✓ “PostgreSQL”, “and more”", "  at the computer, after 2 min, the agent's server said so"],
    ),
    (
        ended(an_ask(), "answered_at_desk", answers=(("PostgreSQL",),), reason="timer", proof="plugin"),
        ["✓ “PostgreSQL”", "  by the agent's own timer, after 2 min, the program that asked said so"],
    ),
    (
        ended(an_ask(), "rejected_at_desk", proof="plugin"),
        ["✗ dismissed", "  at the computer, after 2 min, the program that asked said so"],
    ),
    (
        ended(an_ask(decision=replace(SQLITE, by=None)), "expired", proof="record"),
        [
            "! nobody answered in time: “SQLite (Recommended)”",
            "  by the timer, after 2 min, seen in the agent's own record",
        ],
    ),
    (
        ended(an_ask(decision=LEFT), "expired"),
        ["! nobody answered in time: left to the computer", "  by the timer, after 2 min"],
    ),
    (
        ended(an_ask(), "gone", reason="ended", proof="list"),
        ["– the agent gave it up", "  after 2 min, the agent no longer asks for it"],
    ),
    (
        ended(an_ask(), "gone", reason="ambiguous"),
        ["– two requests looked the same, so nothing was sent", "  after 2 min"],
    ),
    (
        ended(an_ask(), "gone", reason="removed"),
        ["– its machine was removed from Hermes", "  after 2 min"],
    ),
    (
        ended(an_ask(decision=SQLITE), "gone", reason="ended", proof="left"),
        [
            "– the agent gave it up",
            "  Ann (4711) on the phone, too late: “SQLite (Recommended)”",
            "  after 2 min, the agent is no longer there",
        ],
    ),
    (
        ended(an_ask(decision=SQLITE), "answered_at_desk", answers=(("PostgreSQL",),), proof="record"),
        [
            "✓ “PostgreSQL”",
            "  Ann (4711) on the phone, too late: “SQLite (Recommended)”",
            "  at the computer, after 2 min, seen in the agent's own record",
        ],
    ),
    # an older Hermes did not note how it was known, and a person may have no name
    (
        ended(an_ask(decision=replace(SQLITE, by=User(7))), "answered"),
        ["✓ “SQLite (Recommended)”", "  7 on the phone, after 2 min"],
    ),
    (an_ask(decision=SQLITE), ["… on its way: “SQLite (Recommended)”", "  Ann (4711) on the phone"]),
    (an_ask(), ["… waits for you"]),
]


def test_a_windows_project_is_named_as_on_the_phone(store: FileStore) -> None:
    """By its folder alone."""
    entry = an_ask()
    source = replace(entry.ask.source, directory="C:\\work\\shop api\\")
    heading = shown(told(store, replace(entry, ask=replace(entry.ask, source=source))))[0]
    assert heading == "2025-09-04 15:33  shop api · Shop › Fix login · OpenCode on desk · k7"


@pytest.mark.parametrize(("entry", "words"), ENDS)
def test_a_question_is_told_with_its_end(store: FileStore, entry: Entry, words: list[str]) -> None:
    """When, where, what was asked; the answer to the letter; by whom, how fast, and how it is known."""
    assert shown(told(store, entry)) == [
        "2025-09-04 15:33  shop · Shop › Fix login · OpenCode on desk · k7",
        "  Database: Which database should I use?",
        *words,
    ]


REPLIES: list[tuple[Decision | None, OutcomeKind, Response, str]] = [
    (replace(SQLITE, answers=(Answer((0,)),)), "answered", (), "✓ allowed once"),
    (replace(SQLITE, kind="always", answers=()), "answered", (), "✓ always allowed: “npm publish *”, “npm *”"),
    (replace(SQLITE, answers=(Answer((), "use pnpm"),)), "answered", (), "✗ refused: “use pnpm”"),
    (replace(SQLITE, kind="reject", answers=()), "rejected", (), "✗ refused"),
    (replace(SQLITE, kind="reject", answers=(), by=None), "expired", (), "! nobody answered in time: refused"),
    (None, "answered_at_desk", Once(), "✓ allowed once"),
    (None, "answered_at_desk", Allowed(), "✓ allowed"),
    (None, "rejected_at_desk", Refused("not today"), "✗ refused: “not today”"),
    (None, "rejected_at_desk", Refused(None), "✗ refused"),
]


@pytest.mark.parametrize(("decision", "kind", "reply", "line"), REPLIES)
def test_a_permission_is_told_with_its_word(
    store: FileStore, decision: Decision | None, kind: OutcomeKind, reply: Response, line: str
) -> None:
    """What the agent wanted to do, whole, and what was said to it."""
    entry = ended(an_ask(permission=PUBLISH, decision=decision), kind, answers=reply)
    assert shown(told(store, entry))[1:3] == [f"  Wants to run “{COMMAND}”", line]


def test_what_ended_with_another_request_says_so(store: FileStore) -> None:
    """A refusal ends all that its session asks: nobody decided about this one."""
    entry = ended(an_ask(permission=PUBLISH), "rejected_at_desk", answers=Refused(None), reason="together")
    exchange = told(store, entry)
    assert exchange.where == ""
    assert shown(exchange)[-1] == "  together with another request, after 2 min"


def test_of_several_questions_each_has_its_answer(store: FileStore) -> None:
    """Also the one that was left open."""
    decision = replace(SQLITE, answers=(Answer((2, 0)), Answer()))
    words = shown(told(store, ended(an_ask(DATABASE, COLOUR, decision=decision), "answered")))
    assert words[1:4] == [
        "  Database: Which database should I use? → “S, M⏎and L”, “PostgreSQL”",
        "  Colour: Which colour? → no answer",
        "✓ answered",
    ]


def test_what_the_timer_gave_to_several_questions_stands_with_them(store: FileStore) -> None:
    """What the agent recommends, where the configuration says so."""
    decision = replace(SQLITE, answers=(Answer((1,)), Answer((0,))), by=None)
    words = shown(told(store, ended(an_ask(DATABASE, COLOUR, decision=decision), "expired", proof="event")))
    assert words[1:] == [
        "  Database: Which database should I use? → “SQLite (Recommended)”",
        "  Colour: Which colour? → “Red”",
        "! nobody answered in time, so this was given",
        "  by the timer, after 2 min, the agent's server said so",
    ]


def test_a_narrow_terminal_wraps_below_the_beginning_and_a_file_never(store: FileStore) -> None:
    """So that `grep` finds a line."""
    exchange = told(store, ended(an_ask(decision=SQLITE), "answered", proof="record"))
    narrow = shown(exchange, width=40)
    assert all(cell_len(line) <= 40 for line in narrow)
    assert "  seen in the agent's own record" in narrow
    assert BY_ANN in shown(exchange, width=40, terminal=False)


def test_what_agents_write_moves_no_cursor_and_makes_no_markup(store: FileStore) -> None:
    """It is only displayed, and what nobody would read to its end is cut."""
    odd = Question("[bold]Which?\x1b[2J\u202e", "x" * 2000, ())
    words = "\n".join(shown(told(store, an_ask(odd)), width=4000))
    assert "[bold]Which? [2J" in words
    assert f"{'x' * 1000}…" in words
    assert not {"\x1b", "\u202e"} & set(words)


def test_a_list_that_is_not_the_whole_says_so() -> None:
    """What is left out, what is kept no longer, that there is nothing."""
    week_s = 7 * 86400.0
    assert remark(shown=20, found=33, past_s=0, kept_s=week_s) == "13 earlier not shown: hermes log -n 33"
    assert remark(shown=3, found=3, past_s=60, kept_s=week_s) == ""
    assert "kept for 7 days" in remark(shown=3, found=3, past_s=week_s + 1, kept_s=week_s)
    assert remark(shown=0, found=0, past_s=0, kept_s=week_s).startswith("Nothing was asked (what is settled is kept")


# --- for programs ---------------------------------------------------------------------------------------------------


def test_the_keys_are_stable_and_the_words_exact(store: FileStore) -> None:
    """One line of ASCII; labels, line breaks and half an emoji as they were sent."""
    odd = replace(DATABASE, options=(Option("a\nb \ud83d"),))
    decision = replace(SQLITE, answers=(Answer((0,), "and “c”"),))
    line = to_json(told(store, ended(an_ask(odd, decision=decision), "answered", proof="record")))
    assert line.isascii()
    assert "\n" not in line
    record = json.loads(line)
    assert list(record) == [
        *("id", "code", "kind", "agent", "machine", "server", "directory", "session", "root_session", "session_id"),
        *("request_id", "questions", "permission", "asked_at_s", "state", "where", "answer", "decision"),
        *("ended_at_s", "took_s", "confirmed", "reason", "too_late"),
    ]
    assert record["questions"] == [{"header": "Database", "text": DATABASE.text, "options": ["a\nb \ud83d"]}]
    assert record["answer"] == record["decision"].pop("sent") == [["a\nb \ud83d", "and “c”"]]
    assert record["decision"] == {
        "kind": "answer",
        "where": "phone",
        "user_id": 4711,
        "user_name": "Ann",
        "at_s": ASKED_S + 60,
        "stops": False,
    }
    assert (record["state"], record["where"], record["confirmed"]) == ("answered", "phone", "record")
    assert (record["took_s"], record["too_late"]) == (125.0, False)


def test_what_came_too_late_has_both_words(store: FileStore) -> None:
    """Those that took effect, and those that were sent."""
    entry = ended(an_ask(decision=SQLITE), "answered_at_desk", answers=(("Redis",),))
    exchange = told(store, entry)
    assert (exchange.where, exchange.answer, exchange.too_late) == ("computer", (("Redis",),), True)
    assert exchange.decision is not None
    assert exchange.decision.sent == (("SQLite (Recommended)",),)


def test_an_agent_of_tomorrow_is_told_of_without_its_words(store: FileStore) -> None:
    """A newer Hermes may have served it: only its adapter knows how a choice is said."""
    entry = ended(an_ask(decision=SQLITE), "answered")
    source = replace(entry.ask.source, agent="tomorrow")
    exchange = told(store, replace(entry, ask=replace(entry.ask, source=source)))
    assert exchange.decision is not None
    assert exchange.decision.sent is None
    assert "✓ answered, in words that this Hermes does not know" in shown(exchange)


# --- what is found --------------------------------------------------------------------------------------------------


def test_the_newest_comes_last_whether_it_is_over_or_not(store: FileStore) -> None:
    """What ended before the moment is left out, what is open never."""
    old, open_one, new = (replace(an_ask(), id=f"{n}aaa2222", asked_s=ASKED_S + n) for n in range(2, 5))
    settled(store, ended(new, "gone", reason="ended"), ended(old, "gone", reason="ended"))
    at_once(store.create(open_one))
    assert [one.id for one in at_once(gather(store, since_s=0)).exchanges] == ["2aaa2222", "3aaa2222", "4aaa2222"]
    assert [one.id for one in at_once(gather(store, since_s=ENDED_S + 60)).exchanges] == ["3aaa2222"]


def test_an_ask_that_came_by_two_ways_is_told_once(store: FileStore) -> None:
    """The twin was never shown."""
    settled(store, ended(an_ask(), "gone"))
    assert at_once(gather(store, since_s=0)).exchanges == ()


def test_what_cannot_be_read_is_said_and_left_alone(store: FileStore) -> None:
    """Looking puts nothing away, and makes nothing."""
    settled(store, replace(an_ask(), id="aaaa2222"))
    (month,) = (store.home.root / "done").iterdir()
    (month / "bbbb2222.json").write_bytes(b"")
    (store.home.root / "pending/cccc2222.json").write_bytes(b'{"v":99}')
    before = {path: path.stat().st_mtime_ns for path in sorted(store.home.root.rglob("*"))}
    found = at_once(gather(store, since_s=0))
    assert [one.id for one in found.exchanges] == ["aaaa2222"]
    assert found.warnings == (
        f"cannot be read: {month / 'bbbb2222.json'}",
        f"written by a newer Hermes: {store.home.root / 'pending/cccc2222.json'}",
    )
    assert before == {path: path.stat().st_mtime_ns for path in sorted(store.home.root.rglob("*"))}
    assert at_once(gather(a_store(store.home.root / "none"), since_s=0)).exchanges == ()
    assert not (store.home.root / "none").exists()


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2h", datetime(2026, 11, 20, 16, tzinfo=UTC)),
        ("7d", datetime(2026, 11, 13, 18, tzinfo=UTC)),
        ("1d12h", datetime(2026, 11, 19, 6, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=BERLIN)),
        ("2026-11-20T18:00", datetime(2026, 11, 20, 18, tzinfo=BERLIN)),
        ("2026-11-20T18:00+05:00", datetime(2026, 11, 20, 18, tzinfo=timezone(timedelta(hours=5)))),
    ],
)
def test_since_takes_a_length_of_time_or_a_date(text: str, since: datetime) -> None:
    """A date is one of the zone that the phone shows."""
    now_s = datetime(2026, 11, 20, 18, tzinfo=UTC).timestamp()
    assert since_of(text, now_s=now_s, zone=BERLIN) == since.timestamp()


def test_since_without_a_zone_is_of_this_machine() -> None:
    """As `date` shows it."""
    assert since_of("2026-11-20", now_s=0, zone=None) == datetime(2026, 11, 20).astimezone().timestamp()


@pytest.mark.parametrize("text", ["", "yesterday", "5", "-2h", "2026-13-01"])
def test_since_says_what_would_be_right(text: str) -> None:
    """One sentence, and status 2."""
    with pytest.raises(ConfigError, match="such as 2h or 7d, nor a date such as 2026-11-20"):
        since_of(text, now_s=0, zone=BERLIN)


# --- with a listener at work ----------------------------------------------------------------------------------------


async def test_a_tap_is_told_from_the_ask_to_its_proof(home: House) -> None:
    """While it waits, when it is over, and what was answered at the computer; the listener goes on."""
    await home.start()
    first = home.agent.ask([question()])
    asked = await home.person.sees("Which database?")
    store = a_store(home.store)
    assert [one.state for one in (await gather(store, since_s=0)).exchanges] == ["open"]
    await home.person.taps(asked, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    second = home.agent.ask([question("And which colour?")])
    await home.person.sees("And which colour?")
    home.agent.answer(second, [["PostgreSQL"]])
    await home.person.sees("🖥 Answered on the computer", buttons=False)
    await home.closed()
    phone, desk = await until(lambda: at_once(gather(store, since_s=0)).exchanges, "two exchanges")
    assert (phone.request_id, phone.state, phone.answer) == (first, "answered", (("SQLite",),))
    assert (phone.where, phone.confirmed) == ("phone", "record")
    assert phone.decision is not None
    assert (phone.decision.user_id, phone.decision.user_name) == (1001, "Ann")
    assert (desk.request_id, desk.state, desk.answer) == (second, "answered_at_desk", (("PostgreSQL",),))
    assert (desk.where, desk.confirmed, desk.decision) == ("computer", "record", None)
