"""Everyday entries, and hostile ones, for the tests of what is shown."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from hermes.chat.screens.screen import Look
from hermes.model.answer import Answer, Decision, Outcome, User
from hermes.model.ask import Ask, Capabilities, Option, Permission, Question, Source
from hermes.model.entry import Entry, Phone, Timing
from hermes.model.state import Armed, Joining, Offer, Part, State

ASKED_S = datetime(2026, 3, 4, 18, 10, tzinfo=UTC).timestamp()
AT_1812 = ASKED_S + 120
UNTIL_1840 = ASKED_S + 1800
LOOK = Look(tz=UTC, group=False, context_chars=600)
GROUP = Look(tz=UTC, group=True, context_chars=600)
ANN = User(11, "Ann")
OPENCODE = Capabilities("OpenCode")
GOES_ON = Capabilities("Pi", reject_stops=False, can_skip=False)
SOURCE = Source("opencode", "laptop", "ses_1", "/home/dev/shop-api", session_title="Fix login flow")

DATABASE = Question(
    "Which database should I use?",
    "Database",
    (
        Option("PostgreSQL", "relational, robust"),
        Option("SQLite (Recommended)", "zero configuration"),
        Option("Redis", "in memory"),
    ),
    recommended=1,
)
COLOUR = Question("Which colour?", "Colour", (Option("Red"), Option("Blue")))
SIZES = Question(
    "Which sizes?", "Sizes", (Option("S", "small"), Option("M", "medium"), Option("L", "large")), multiple=True
)
NAME = Question("What is it called?", "Name")
THREE = (COLOUR, SIZES, NAME)
GIVEN = (Answer((1,)), Answer((0, 2), "XXL, but only in blue"), Answer())

SQLITE = Decision("answer", AT_1812, (Answer((1,)),), ANN)
STOP = Decision("reject", AT_1812, (), ANN)
SKIP = Decision("skip", AT_1812, (), ANN)


def entry(
    *questions: Question,
    state: State | None = None,
    source: Source = SOURCE,
    capabilities: Capabilities = OPENCODE,
    answerable: bool = True,
    timing: Timing | None = None,
) -> Entry:
    """Return an entry asked at 18:10 that waits until 18:40."""
    shown = state or State(answers=tuple(Answer() for _ in questions))
    asked = Ask(source, questions, capabilities, answerable)
    return Entry("e1", "k7", asked, shown, Phone(11, 500), ASKED_S, timing or Timing(ASKED_S, 0, 0, UNTIL_1840))


def settled(outcome: Outcome, decision: Decision | None = None, *, working: bool = False, away: bool = False) -> State:
    """Return the state of an ask that is over."""
    return State(phase="settled", outcome=outcome, decision=decision, working=working, away=away)


# --- hostile ones ------------------------------------------------------------------------------------

NASTY = (
    "\u202eevil\u202c", "\u2066x\u2069", "\u200f", "\ufeff", "\ud83d", "\x00", "\x1b[31mred", "\x07", "\r\n", "\u2028",
    "https://evil.example/x?y=1", "tg://resolve?domain=x", "t.me/x", "README.md", "a@b.com", "192.168.1.1:80/x",
    "/stop", "/stop@my_bot", "@someone", "#k3", "#ünï", "$USD", "#", "/", "@", ".", "//", "://",
    "👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "e\u0301", "Z" + "\u0322" * 40, "𝒳", "(Recommended)", "⏹ Stop", "✏️ Other", "ע", "عربي",
    "\u3164", "\u2800", "\u200b", "\t", "\n\n\n\n", " ", "a" * 700, "😀" * 300, "<b>", "*_`[", "word " * 60,
)  # fmt: skip

wild = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=8), st.characters()), max_size=12).map("".join)
options = st.builds(Option, wild, wild)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Return a question of any shape; long lists repeat what was drawn, as repeated labels do happen."""
    drawn: list[Option] = draw(st.lists(options, max_size=4))
    times: int = draw(st.sampled_from((1, 1, 7, 25)))
    offered = tuple(drawn * times)
    starred: bool = draw(st.booleans())
    recommended: int | None = draw(st.integers(0, len(offered) - 1)) if starred and offered else None
    return Question(draw(wild), draw(wild), offered, draw(st.booleans()), draw(st.booleans()), recommended)


def answers(asked: tuple[Question, ...]) -> st.SearchStrategy[tuple[Answer, ...]]:
    """Return answers to these questions."""
    return st.tuples(
        *(
            st.builds(
                Answer,
                st.lists(st.integers(0, max(0, len(q.options) - 1)), max_size=5, unique=True).map(tuple),
                st.none() | wild,
            )
            for q in asked
        )
    )


users = st.builds(User, st.integers(1, 9), wild)
moments = st.floats(ASKED_S - 10**7, ASKED_S + 10**7)
sources = st.builds(
    Source,
    agent=st.just("opencode"),
    machine=wild,
    session_id=st.just("ses_1"),
    directory=wild,
    session_title=wild,
    root_title=wild,
    last_text=wild,
)
capabilities = st.builds(Capabilities, wild, st.booleans(), st.booleans())
desk = st.lists(st.lists(wild, max_size=3).map(tuple), max_size=4).map(tuple)
kinds = st.sampled_from(("answered", "rejected", "skipped", "answered_at_desk", "rejected_at_desk", "expired", "gone"))
outcomes = st.builds(Outcome, kinds, moments, desk, st.sampled_from(("", "ended", "ambiguous", "together")))
looks = st.builds(
    Look,
    st.none() | st.just(UTC),
    st.booleans(),
    st.sampled_from((0, 1, 600, 3000)),
    st.sampled_from(("reject", "recommended", "skip", "keep")),
    st.none() | st.floats(1, 10**6),
)
timings = st.builds(
    Timing,
    posted_s=st.none() | moments,
    until_s=st.none() | moments,
    called=st.booleans(),
    reminded=st.integers(0, 5),
)


texts = st.lists(wild, max_size=8).map(tuple)
permissions = st.builds(
    Permission,
    wild,
    st.sampled_from(("command", "change", "folder", "fetch", "other")),
    wild | wild.map(lambda text: text * 40),
    wild | wild.map(lambda text: f"--- {text}\n+++ a\n@@ -1 +1 @@\n+{text}\n" * 30),
    texts,
    texts,
)


@st.composite
def hostile(draw: st.DrawFn) -> Entry:
    """Return an entry with whatever an agent, a person and a dialog can put into one, and some more."""
    asked = tuple(draw(st.lists(questions(), max_size=draw(st.sampled_from((1, 1, 3, 20))))))
    permission = draw(st.none() | st.none() | permissions)
    if permission is not None:
        asked = (Question("May it?", permission.what, (Option("Allow once"),)),)
    pages = st.integers(0, len(asked))
    at = st.integers(0, max(0, len(asked) - 1))
    decisions = st.builds(
        Decision,
        st.sampled_from(("answer", "reject", "skip", "release", "always")),
        moments,
        answers(asked) | st.just(()),
        st.none() | users,
    )
    parts = st.lists(st.builds(Part, st.integers(1, 9), wild), max_size=2).map(tuple)
    state = State(
        phase=draw(st.sampled_from(("open", "open", "open", "matching", "held", "sending", "settled"))),
        page=draw(pages),
        shelf=draw(st.integers(0, 99)),
        answers=draw(answers(asked)),
        epoch=draw(st.integers(0, 10**6)),
        armed=draw(st.none() | st.builds(Armed, at, st.just(1))) if asked else None,
        confirm=draw(st.none() | st.none() | st.sampled_from(("reject", "skip", "send", "always"))),
        offer=draw(st.none() | st.builds(Offer, at, users, st.integers(1, 2**40), wild)) if asked else None,
        joining=draw(st.none() | st.builds(Joining, at, users, parts)) if asked else None,
        decision=draw(st.none() | decisions),
        away=draw(st.booleans()),
        outcome=draw(st.none() | outcomes),
        working=draw(st.booleans()),
        whole=draw(st.booleans()),
    )
    answerable = draw(st.sampled_from((True, True, True, False)))
    ask = Ask(draw(sources), asked, draw(capabilities), answerable, permission)
    return Entry("e1", "k7", ask, state, Phone(1, 5), draw(moments), draw(timings), trail=draw(texts))
