"""The scenes of the demo: when a visitor presses a button, the agent asks something, or ends its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]
Through = Literal["server", "plugin", "opencode2", "work"]

RTL: Final = "\u202eexe.gpj\u202c \u200fالعربية ← مرحبا"
"""Right-to-left letters, and a control character that reverses the text after it."""

LONG: Final = (
    "Rewrite the importer so that it streams, keep the old one behind a flag for two releases, and write down why in "
    "the changelog"
)


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt that was typed at the desk `ago_s` seconds ago, and the end of its turn.

    It ends with `words` and `changes` of files, or with a `failure`: the provider's words, and its HTTP status.
    """

    prompt: str
    ago_s: float
    words: str = ""
    changes: tuple[Json, ...] = ()
    failure: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """One ask: `questions` (in OpenCode's shape), a form of `fields`, or a permission to run `command`; or a `task`.

    `through` says how Hermes learns of it: from the agent's server, from the hook that its plugin starts, or from the
    server of OpenCode 2, which alone has forms. "work" is a turn of an agent with a server that ends without an ask.
    `hurried`: while it is open, the time to answer is short (`Spans.hurried`, half a minute).
    """

    name: str
    label: str
    hint: str
    title: str
    folder: str
    say: str
    questions: tuple[Json, ...] = ()
    fields: tuple[Json, ...] = ()
    command: str = ""
    task: Task | None = None
    through: Through = "server"
    hurried: bool = False

    @property
    def asked(self) -> tuple[str, ...]:
        """The texts of the questions or fields, or the command."""
        texts = (*(one["question"] for one in self.questions), *(one["description"] for one in self.fields))
        return texts or (self.command,)


def _question(text: str, header: str, options: Sequence[tuple[str, str]] = (), *, multiple: bool = False) -> Json:
    listed = [{"label": label, "description": description} for label, description in options]
    asked: Json = {"question": text, "header": header, "options": listed}
    return {**asked, "multiple": True} if multiple else asked


_DATABASE = _question(
    "Which database should I use?",
    "Database",
    (
        ("PostgreSQL", "relational, robust"),
        ("SQLite (Recommended)", "zero configuration"),
        ("Redis", "in memory"),
    ),
)
_CHECKS = _question(
    "Which checks shall run on every push?",
    "Checks",
    (
        ("Formatting", "a second"),
        ("Types", "ten seconds"),
        ("Unit tests", "half a minute"),
        ("Browser tests", "six minutes"),
    ),
    multiple=True,
)
_COLOUR = _question(
    "Which colour shall the buttons have?",
    "Colour",
    (("Indigo", "as on the old page"), ("Teal", "as in the logo"), ("Graphite", "quiet")),
)
_SIZES = _question(
    "Which sizes shall I draw?",
    "Sizes",
    (("Small", "24 pixels"), ("Medium", "32 pixels"), ("Large", "48 pixels")),
    multiple=True,
)
_NAME = _question("What shall the component be called?", "Name", (("Button", ""), ("Action", "leaves room for menus")))
_NOTE = _question("What shall the release note say, in a sentence?", "Release note")
_ODD = _question(
    f"Labels as no form ever expects them: <b>bold?</b> **stars**, /stop, @everyone, https://example.org, {RTL}",
    "<script>alert(1)</script>",
    (
        ("<script>document.title='taken'</script>", "a script that must stay a text"),
        (LONG, "longer than any button, and sent to the letter"),
        (RTL, "from right to left"),
        ("👩‍🚀👨‍👩‍👧‍👦 🇧🇷 é z̸̛a̶l̵g̴o̷", "signs made of many"),
        ("Same", "the first of two"),
        ("Same", "the second of two"),
    ),
)
_MERGE = _question("The tests are green. Shall I merge?", "Merge", (("Yes", ""), ("No", "wait for a review")))
_PORT = _question(
    "Port 8080 is taken. Which one instead?", "Port", (("8081", ""), ("9000", ""), ("Any free one", "printed at start"))
)
_WORKERS: Final = {
    "key": "workers",
    "title": "Workers",
    "description": "How many workers shall import at once?",
    "type": "integer",
    "minimum": 1,
    "maximum": 16,
}
_AGAIN: Final = {
    "key": "again",
    "title": "Again",
    "description": "Shall a row that fails be tried again?",
    "type": "boolean",
}

SCENES: Final = (
    Scene(
        "finishes",
        "It finishes",
        "12 minutes of work",
        "Sign in again",
        "shop-api",
        "",
        task=Task(
            "Users have to sign in again after each deploy. Find out why, and fix it.",
            ago_s=12 * 60,
            words="Users stay signed in now. The key that signs the cookies was made again at each start; it is read "
            "from the settings instead, and a start without one fails with a sentence that says so. Both tests that "
            "showed the defect pass, and so do all others. I left the length of a session as it is: 14 days. Tell me "
            "if that should change, too.",
            changes=(
                {"file": "session.py", "additions": 58, "deletions": 24},
                {"file": "settings.py", "additions": 9, "deletions": 1},
                {"file": "test_session.py", "additions": 47, "deletions": 6},
                {"file": "README.md", "additions": 6, "deletions": 0},
            ),
        ),
        through="work",
    ),
    Scene(
        "fails",
        "It fails",
        "its model says no",
        "Describe the products",
        "shop-api",
        "",
        task=Task(
            "Write a description of each product that has none.",
            ago_s=5 * 60,
            failure=("Your credit balance is too low", 402),
        ),
        through="work",
    ),
    Scene(
        "one",
        "One choice",
        "one tap answers",
        "Fix login flow",
        "shop-api",
        "I have read the models and the two migrations. The schema is small, there is one writer, and nothing needs to "
        "be shared between machines, so either of the first two would do. PostgreSQL would want a service of its own; "
        "SQLite is a file beside the application, and can be moved later.",
        (_DATABASE,),
    ),
    Scene(
        "many",
        "Choose any",
        "tick, then Done",
        "Set up CI",
        "shop-api",
        "The workflow is there; only its steps are missing.",
        (_CHECKS,),
    ),
    Scene(
        "three",
        "Three questions",
        "pages and a review",
        "Draw the buttons",
        "design-kit",
        "Before I begin I need three decisions from you.",
        (_COLOUR, _SIZES, _NAME),
    ),
    Scene(
        "text",
        "Free text",
        "reply, or tap ✏️",
        "Release 2.0",
        "shop-api",
        "Everything is tagged. The note goes out with the tag.",
        (_NOTE,),
    ),
    Scene(
        "permission",
        "A permission",
        "a command to run",
        "Move the tables",
        "shop-api",
        "",
        command="make migrate ENV=staging",
    ),
    Scene(
        "odd",
        "Long, odd labels",
        "hostile on purpose",
        "Trouble for screens",
        "odd-names",
        "<img src=x onerror=alert(1)> is what I found in the fixtures.",
        (_ODD,),
    ),
    Scene(
        "plugin",
        "By its plugin",
        "without a port",
        "Start the server",
        "notes",
        "The server did not start: something listens there already.",
        (_PORT,),
        through="plugin",
    ),
    Scene(
        "opencode2",
        "OpenCode 2",
        "number, yes or no",
        "Import the orders",
        "shop-api",
        "One worker needs four hours for all orders.",
        fields=(_WORKERS, _AGAIN),
        through="opencode2",
    ),
    Scene(
        "hurried",
        "Expires in {ttl} s",
        "leave it alone",
        "Merge the branch",
        "shop-api",
        "All 214 tests pass.",
        (_MERGE,),
        hurried=True,
    ),
)
"""In the order of their buttons; `{ttl}` in a label stands for `Spans.hurried`."""
