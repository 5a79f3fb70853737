"""The line about a prompt, below the person's text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hermes.chat.screens.buttons import LIMITS, Button, of_record
from hermes.chat.screens.screen import Screen, agent_at, draw, lasting, note, project
from hermes.chat.screens.text import Line, Span, dotted, line, one_line, passage, phrase, plain, shortened
from hermes.chat.screens.unseen import seen
from hermes.core import prompt_files, prompts
from hermes.model.actions import Address, Back, SendAgain, SendHeard, SendNow, StopTurn, Withdraw
from hermes.model.prompt import Prompt, Target
from hermes.model.prompt_events import Addressed

_TITLE: Final = 60
_LOOKED_AT: Final = 600
_PLACE: Final = 14
_NOBODY: Final = "Nothing"
_WHY: Final = 300
_HEARD: Final = 3600
_TOOL: Final = 40
_MINUTE_S: Final = 60


def prompt_line(prompt: Prompt, now_s: float, *, is_locked: bool = False) -> Screen:
    """Return the line: the state of the prompt, its session, and the buttons that can change it.

    `is_locked`: the phone is locked.
    """
    if prompt.target is None:
        return _whom(prompt)
    said, buttons = _said(prompt, now_s)
    if is_locked and may_be_held(prompt, now_s):
        said, buttons = line(f"⏳ Waits until the phone is unlocked{_edited(prompt)}"), _free(prompt)
    where = origin(prompt.target)
    return draw(lambda _: [said, where], (tuple(buttons),))


def may_be_held(prompt: Prompt, now_s: float) -> bool:
    """Tell whether this prompt waits for the unlock if the phone is locked, and not for a tap of the person."""
    is_unsent = prompt.phase == "queued" or (prompt.phase == "sending" and prompt.is_clear)
    return is_unsent and not prompts.is_stale(prompt, now_s) and not prompt_files.waits_for_yes(prompt)


def origin(target: Target) -> Line:
    """Return the names of the session, its project and its agent, each once: a session may be named by its folder."""
    names = [project(target.source), title(target), agent_at(target.agent_name, target.source)]
    return dotted(dict.fromkeys(names))


def title(target: Target) -> Span:
    """Return the title of a session, or the name of its folder; "a new session" if it does not exist yet."""
    source = target.source
    named = phrase(source.session_title, _TITLE)
    if named.text:
        return named
    return project(source) if source.session_id else Span("a new session")


def called(target: Target) -> str:
    """Return the name of a session for its button: its title, else its project."""
    return one_line(target.source.session_title[:_LOOKED_AT]) or place(target) or "A session"


def place(target: Target) -> str:
    """Return the name of a session's project for a button."""
    return plain(project(target.source).text)


def apart(labels: Sequence[str], first: int = 1, own: str = "") -> list[str]:
    """Return the texts of buttons, shortened to their width; if two look the same then, all get numbers.

    `own` is a button of Hermes' own beside them.
    """
    short = [shortened(label, LIMITS.columns) for label in labels]
    if _differ(*short, own):
        return short
    return [f"{number} {shortened(label, LIMITS.columns - 4)}" for number, label in enumerate(labels, first)]


def _differ(*labels: str) -> bool:
    return len(set(map(seen, labels))) == len(labels)


def _whom(prompt: Prompt) -> Screen:
    if prompt.phase == "withdrawn":
        return note(*_cancelled(prompt)) if prompt.reason else note("All right, I send it to nobody")
    names = [(_choice(target), target) for target in prompt.choices]
    alone = [name for name, _ in names]
    with_place = [_with(place(target), name, target) for name, target in names]
    with_agent = [_with(plain(target.agent_name), name, target) for name, target in names]
    # The shortest of those that tell the most sessions apart.
    clearest = max((alone, with_place, with_agent), key=lambda labels: len({seen(one) for one in (*labels, _NOBODY)}))
    labels = apart(clearest, own=_NOBODY)
    rows = tuple((of_record(prompt.id, label, Address(number)),) for number, label in enumerate(labels))
    return note("What is this for?", rows=(*rows, (of_record(prompt.id, _NOBODY, Withdraw()),)))


def _choice(target: Target) -> str:
    if not target.source.session_id:
        return f"New in {place(target)}" if place(target) else "A new session"
    return shortened(called(target), LIMITS.columns)


def _with(more: str, name: str, target: Target) -> str:
    """Return the name of a session with its project, or with its agent, behind it."""
    short = shortened(more, _PLACE)
    if not short or not target.source.session_id:
        return name
    return f"{shortened(name, LIMITS.columns - _PLACE - 3)} · {short}"


_Said = tuple[Line, list[Button]]


def _said(prompt: Prompt, now_s: float) -> _Said:
    goes_by_itself = not prompts.is_stale(prompt, now_s) and prompt_files.is_complete(prompt)
    match prompt.phase:
        case "queued" | "sending" if prompt.is_away and goes_by_itself:
            return _away(prompt), _free(prompt)
        case "queued":
            return _waiting(prompt, now_s)
        case "sending" | "admitted" | "running":
            return _working(prompt, now_s)
        case "finished" if prompts.content(prompt).kind == "note":
            return line("✅ Noted. The agent reads it with your next prompt."), []
        case "finished":
            return line(f"✅ Done{_took(prompt, now_s)}"), []
        case "stopped":
            return line(f"⏹ Stopped{_took(prompt, now_s)}"), []
        case "failed":
            again = [] if _is_in_vain(prompt) else [of_record(prompt.id, "🔁 Send again", SendAgain())]
            return line("❌ ", "" if prompt.tries else "Not sent: ", passage(prompt.reason, _WHY)), again
        case _:
            return line(*_cancelled(prompt)), []


def _is_in_vain(prompt: Prompt) -> bool:
    """Tell whether another try fails at once, whatever the agent says: for its text, or for its files."""
    fresh = replace(prompt, phase="unaddressed", due_s=None)
    return prompt.target is not None and prompts.is_over(prompts.step(fresh, Addressed(prompt.asked_s, prompt.target)))


def _cancelled(prompt: Prompt) -> tuple[str | Span, ...]:
    return ("✖️ Cancelled", ": " if prompt.reason else "", passage(prompt.reason, _WHY))


def _away(prompt: Prompt) -> Line:
    who = Span("the agent") if prompt.target is None else agent_at(prompt.target.agent_name, prompt.target.source)
    return line("💾 Saved. ", who, " can't be reached; it gets this as soon as it is back.")


def _waiting(prompt: Prompt, now_s: float) -> _Said:
    edited, now = _edited(prompt), of_record(prompt.id, "▶️ Send now", SendNow())
    if prompts.is_stale(prompt, now_s):
        not_yet = f"⏳ Not sent yet, for {lasting(now_s - prompts.typed_s(prompt))}. "
        if prompt_files.waits_for_yes(prompt):  # what was heard is to be read before it leaves
            asked, buttons = _getting(prompt, edited)
            return line(not_yet, *asked), buttons
        return line(f"{not_yet}Send it now?{edited}"), [now, *_free(prompt)]
    if not prompt_files.is_complete(prompt):
        return _getting(prompt, edited)
    if prompt.target is not None and not prompt.target.source.session_id:
        return line(f"⏳ The session begins{edited}"), _free(prompt)
    steers = prompt.target is not None and prompt.target.can.steers and not prompt.is_hurried
    return line(f"⏳ Waits for the current turn{edited}"), [now, *_free(prompt)] if steers else _free(prompt)


def _edited(prompt: Prompt) -> str:
    return " · edited" if prompt.is_edited else ""


def _getting(prompt: Prompt, edited: str) -> _Said:
    """Return what is said while files are on their way, and the words of a voice note for the person to agree with."""
    lacking = [file for _, file in prompt_files.lacking(prompt)]
    if not lacking:
        agree = of_record(prompt.id, "✅ Send", SendHeard())
        heard = passage(prompt_files.heard(prompt), _HEARD, "bold")
        return line("🎤 I heard: ", heard, " – shall I send that?"), [agree, *_free(prompt)]
    if any(file.is_voice for file in lacking):
        return line("🎤 Listening to your voice note"), _free(prompt)
    what = "your file" if len(lacking) == 1 else f"{len(lacking)} files"
    return line(f"📥 Getting {what} from Telegram{edited}"), _free(prompt)


def _working(prompt: Prompt, now_s: float) -> _Said:
    if prompt.stop == "sure":
        yes = of_record(prompt.id, "Yes, stop", StopTurn(is_sure=True))
        return line("Stop the agent? It ends its turn here."), [yes, of_record(prompt.id, "Back", Back())]
    stops = prompt.target is not None and prompt.target.can.stops and prompt.phase != "sending"
    stop = [of_record(prompt.id, "⏹ Stop", StopTurn())] if stops and prompt.stop != "asked" else []
    away = " · can't be reached now" if prompt.is_away else ""
    if prompt.stop == "asked":
        return line(f"⏹ Stopping …{away}"), []
    told = {"told": " · told to stop", "refused": " · it could not be stopped"}.get(prompt.stop, "")
    if prompt.phase != "running":
        return line(f"📨 {'Sent' if prompt.phase == 'admitted' else 'Sending'}{told}{away}"), stop
    tool = f" · {phrase(prompt.tool, _TOOL).text}" if prompt.tool else ""
    return line(f"▶️ Working{_took(prompt, now_s)}{tool}{told}{away}"), stop


def _took(prompt: Prompt, now_s: float) -> str:
    began_s = prompt.began_s or prompt.tried_s
    passed_s = (prompt.ended_s or now_s) - began_s
    return f" · {lasting(passed_s)}" if began_s and passed_s >= _MINUTE_S else ""


def _free(prompt: Prompt) -> list[Button]:
    return [of_record(prompt.id, "✖️ Cancel", Withdraw())] if prompts.is_free(prompt) else []
