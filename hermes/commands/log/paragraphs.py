"""Print the exchanges of `hermes log` as paragraphs; answers and requested actions are quoted to the letter."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo

from rich.console import Console
from rich.text import Text

from hermes.chat.screens.screen import lasting
from hermes.commands.log.history import Decided, Exchange
from hermes.commands.status.survey import permission_wanted
from hermes.commands.status.table import STATES, plain, span
from hermes.model.answer import Allowed, Always, Once, Proof, Refused, Response
from hermes.model.ask import Permission, folder_name

LAST = 20
"""The number of exchanges that are shown without -n, --since and --json."""
_LONGEST = 1000
_HARMLESS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{NO-BREAK SPACE}"
_PROOFS: dict[Proof, str] = {
    "": "",
    "record": "seen in the agent's own record",
    "event": "the agent's server said so",
    "plugin": "the program that asked said so",
    "list": "the agent no longer asks for it",
    "accepted": "the agent took it, and shows no record of it",
    "receipt": "handed over to the program",
    "left": "the agent is no longer there",
}


def remark(*, shown: int, found: int, past_s: float, kept_s: float) -> str:
    """Return a sentence about a list that is empty or may be incomplete, else "".

    `past_s` is the age that --since asks for (0 without it), `kept_s` the age to which settled asks are kept, both in
    seconds.
    """
    kept = f"what is settled is kept for {lasting(kept_s)}, see store.keep_done"
    if found > shown:
        return f"{found - shown} earlier not shown: hermes log -n {found}"
    if not found:
        return f"Nothing was asked ({kept})."
    return f"There may have been more before: {kept}." if past_s > kept_s else ""


def show(exchanges: Iterable[Exchange], console: Console, *, zone: tzinfo | None) -> None:
    """Print a paragraph for each exchange. Lines are wrapped only on a terminal."""
    for number, exchange in enumerate(exchanges):
        if number:
            console.print()
        _put(console, Text(), _heading(exchange, zone))
        for line in _asked(exchange):
            _put(console, Text("  "), line)
        _put(console, Text.assemble(_sign(exchange), " "), _result(exchange))
        for line in _background(exchange):
            _put(console, Text("  "), line)


def _put(console: Console, lead: Text, text: Text) -> None:
    """Print the text with `lead` before its first line, and the same width of spaces before the others."""
    lines = text.wrap(console, max(1, console.width - lead.cell_len)) if console.is_terminal else [text]
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text.assemble(" " * lead.cell_len if number else lead, line), soft_wrap=True)


def _heading(exchange: Exchange, zone: tzinfo | None) -> Text:
    at = datetime.fromtimestamp(exchange.asked_at_s, UTC).astimezone(zone)
    session = " › ".join(filter(None, dict.fromkeys((exchange.root_session, exchange.session))))
    agent = f"{exchange.agent} on {exchange.machine}"
    text = Text.assemble((f"{at:%Y-%m-%d %H:%M}  ", "dim"), plain(folder_name(exchange.directory), "bold"))
    for piece in filter(None, (session, agent, exchange.code)):
        text.append(" · " if text.plain[-1] != " " else "", "dim").append(plain(piece, "dim"))
    return text


def _asked(exchange: Exchange) -> Iterator[Text]:
    if exchange.permission is not None:
        yield Text.assemble(permission_wanted(exchange.permission), " ", _quoted(_cut(exchange.permission.what)))
        return
    answers = exchange.answer if len(exchange.questions) > 1 and isinstance(exchange.answer, tuple) else None
    for number, posed in enumerate(exchange.questions):
        text = Text.assemble(
            plain(_cut(posed.header), "bold"), ": " if posed.header and posed.text else "", plain(_cut(posed.text))
        )
        if answers is not None and number < len(answers):
            text.append(" → ").append(_labels(answers[number]))
        yield text


def _sign(exchange: Exchange) -> Text:
    refused = exchange.state == "rejected" or isinstance(exchange.answer, Refused)
    if exchange.permission is not None and refused and exchange.state != "expired":
        return Text("✗", "red")
    return Text(*_SIGNS.get(exchange.state, ("…", "yellow")))


_SIGNS: dict[str, tuple[str, str]] = {
    "answered": ("✓", "green"),
    "answered_at_desk": ("✓", "green"),
    "skipped": ("✓", "green"),
    "rejected": ("✗", "red"),
    "rejected_at_desk": ("✗", "red"),
    "expired": ("!", "yellow"),
    "gone": ("–", "dim"),
    "sending": ("…", "cyan"),
}


def _result(exchange: Exchange) -> Text:
    """Return the words for the state or the end of the ask."""
    match exchange.state:
        case "answered" | "rejected" | "skipped":
            return _decision_in_words(exchange)
        case "rejected_at_desk" if exchange.permission is None:
            return Text("dismissed")
        case "answered_at_desk" | "rejected_at_desk":
            return _answer_in_words(exchange, exchange.answer)
        case "expired" if len(exchange.questions) > 1 and exchange.answer:
            return Text("nobody answered in time, so this was given", "yellow")
        case "expired":
            return Text.assemble(("nobody answered in time: ", "yellow"), _decision_in_words(exchange))
        case "gone":
            return Text(_GONE.get(exchange.reason, "the agent gave it up"))
        case "sending":
            return Text.assemble(STATES["sending"], ": ", _decision_in_words(exchange))
        case state:
            return STATES[state]


_GONE: dict[str, str] = {
    "ambiguous": "two requests looked the same, so nothing was sent",
    "removed": "its machine was removed from Hermes",
}


def _background(exchange: Exchange) -> Iterator[Text]:
    """Yield a line about a decision that came too late; then one with the person or place, the duration, the proof."""
    who = _who(exchange.decision) if exchange.decision is not None else ""
    if exchange.too_late:
        yield Text.assemble((f"{who}, too late: ", "yellow"), _decision_in_words(exchange))
        who = ""
    if exchange.where == "computer":
        who = "at the computer"
    elif exchange.reason == "together":
        who = "together with another request"
    elif exchange.reason == "timer":
        who = "by the agent's own timer"
    after = "" if exchange.took_s is None else f"after {span(exchange.took_s)}"
    if known := ", ".join(filter(None, (who, after, _PROOFS[exchange.confirmed]))):
        yield Text(known, "dim")


def _who(decision: Decided) -> str:
    if decision.where == "timer":
        return "by the timer"
    name = plain(decision.user_name).plain
    return f"{name} ({decision.user_id}) on the phone" if name else f"{decision.user_id} on the phone"


def _decision_in_words(exchange: Exchange) -> Text:
    decision = exchange.decision
    match decision.kind if decision is not None else "release":
        case "release":
            return Text("left to the computer")
        case "skip":
            return Text("left to decide by itself")
        case "reject" if exchange.permission is None:
            return Text("told to stop" if decision is not None and decision.stops else "told no")
        case _:
            sent = decision.sent if decision is not None else None
            # For an answered permission, show the words that took effect, perhaps only "allowed"; else the decision.
            known = exchange.answer if exchange.permission is not None and exchange.state == "answered" else sent
            return _answer_in_words(exchange, known)


def _answer_in_words(exchange: Exchange, answer: Response | None) -> Text:
    if answer is None:
        return Text("answered, in words that this Hermes does not know")
    if exchange.permission is not None:
        return _reply(exchange.permission, answer)
    if not isinstance(answer, tuple) or not answer or (len(exchange.questions) > 1 and answer == exchange.answer):
        return Text("answered")
    return Text(", ").join(map(_labels, answer))


def _reply(permission: Permission, reply: Response) -> Text:
    match reply:
        case Once():
            return Text("allowed once")
        case Always():
            covered = Text(", ").join(_quoted(one) for one in permission.always)
            return Text.assemble("always allowed", ": " if covered else "", covered)
        case Refused(why) if why:
            return Text.assemble("refused: ", _quoted(why))
        case Refused():
            return Text("refused")
        case Allowed():
            return Text("allowed")
        case _:
            return Text("answered, in a way that this Hermes does not know")


def _labels(labels: tuple[str, ...]) -> Text:
    return Text(", ").join(map(_quoted, labels)) if labels else Text("no answer", "dim")


def _quoted(words: str) -> Text:
    return Text.assemble("“", Text(_exact(words.replace("\n", "⏎")), "bold"), "”")


def _exact(words: str) -> str:
    """Return the words with the code point for each sign that could move the cursor or turn the reading direction."""
    return "".join(sign if sign.isprintable() or sign in _HARMLESS else f"⟨U+{ord(sign):04X}⟩" for sign in words)


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
