"""Permissions in the listener: one message that moves on, one word for many, and the commands of the chat."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from hermes.chat.screens.permission import TRAIL_LINES
from hermes.core.graces import LATE_ASK_S
from hermes.errors import Stuck, TooNew
from hermes.hook import spool
from hermes.listener.phone import permission_queue
from hermes.listener.phone.permission_queue import FRESH_S, IN_A_ROW_S
from hermes.model.answer import Answer, Decision
from hermes.model.entry import Phone
from tests.asks import ANN, permission_ask
from tests.books import a_book
from tests.chat.screens.entries import LOOK
from tests.listener.gates import fails_for
from tests.listening import BOTH, House, house, question, until
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.model.entry import Entry
    from hermes.sandbox.phone_values import ShownMessage

RUN = "OpenCode wants to run:"
REFUSE = "✋ Refuse"
home = house("new")
old = house("old")
portless = house(started=True)


async def wants_to_run(home: House, command: str, session: str | None = None) -> tuple[str, str]:
    """Let the agent ask whether it may run this; request and session."""
    request_id = home.agent.ask_permission("bash", [command], session=session)
    return request_id, home.agent.permissions[request_id]["sessionID"]


def sent(home: House, text: str = RUN) -> list[ShownMessage]:
    """Every message that the bot ever sent with this text."""
    found = home.api.control.messages()
    return [one for one in found if one.from_bot and text in one.versions[0].text]


async def twice(home: House, message: ShownMessage, first: str, second: str) -> None:
    """Tap, and then the second thought."""
    await home.person.taps(message, first)
    await home.person.taps(message, second)


# --- one message that moves on ------------------------------------------------------------------------------------


async def looks_at(home: House, message: ShownMessage) -> None:
    """Wait until it is known to be there, and then for longer than an impatient finger would."""
    await home.noted(message)
    home.clock.advance(FRESH_S)


async def allows(home: House, message: ShownMessage) -> None:
    """Look, and then let it."""
    await looks_at(home, message)
    assert await home.person.taps(message, "Allow once") == "Allow once"


async def test_what_opencode_run_refuses_by_itself_is_never_posted(home: House) -> None:
    """It does so some ms after the request, and nobody need do anything; what stays comes."""
    await home.start()
    with home.clock.standing():
        request_id, _ = await wants_to_run(home, "echo run")
        await until(home.entries, "the request")
        home.agent.permit(request_id, "reject")
        await home.closed()
    await wants_to_run(home, "echo stays")
    await home.person.sees("echo stays", buttons=True)
    assert sent(home, "echo run") == []


@BOTH
async def test_what_comes_next_takes_the_place_of_the_one_before(home: House) -> None:
    """A new message, which rings; what was decided before is told in it, and the message before goes."""
    await home.start()
    home.agent.finishes = False
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    await allows(home, first)
    await home.person.sees("✅ Allowed once", buttons=False)
    await wants_to_run(home, "echo two", session)
    second = await home.person.sees("echo two", buttons=True)
    assert not second.silent
    assert "✅ Allowed once: echo one" in second.text
    await home.person.gone(first)
    await allows(home, second)
    await home.closed()
    assert [one.deleted for one in sent(home)] == [True, False]


async def test_a_long_row_keeps_its_last_lines_alone(home: House) -> None:
    """An agent that asks a thousand times does not make each request longer than the one before."""
    await home.start()
    home.agent.finishes = False
    _, session = await wants_to_run(home, "echo 0")
    for number in range(1, TRAIL_LINES + 3):
        await allows(home, await home.person.sees(f"echo {number - 1}", buttons=True))
        await home.person.sees("✅ Allowed once", buttons=False)
        await wants_to_run(home, f"echo {number}", session)
        await home.person.sees(f"echo {number}", buttons=True)
    (last,) = [entry for entry in home.entries() if entry.state.phase == "open"]
    await until(lambda: len(home.entry().trail) == TRAIL_LINES, "the trail noted")
    assert home.entry().id == last.id
    assert home.entry().trail[-1] == f"✅ Allowed once: echo {TRAIL_LINES + 1}"


async def test_an_impatient_finger_allows_nothing_unread(home: House) -> None:
    """The next one comes into the place of the one before: a tap in that moment was not meant for it."""
    await home.start()
    one, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    two, _ = await wants_to_run(home, "echo two", session)
    await until(lambda: len(home.entries()) == 2, "both entries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permission_queue, "FRESH_S", 600.0)  # a finger is as impatient as it is, however slow the machine
        await home.person.taps(first, "Allow once")
        second = await home.person.sees("echo two", buttons=True)
        await until(lambda: home.listener._parts.phone.posting._queue._moved_s, "the move noted")
        hasty = home.person.tap(second, "Allow once")
        assert "look first" in await home.person.toast(hasty)
    (behind,) = [entry for entry in home.entries() if entry.ask.source.request_id == two]
    assert hasty.update_id in behind.state.seen, "when it comes again it counts no more"
    assert home.agent.came_of(one) == [(("once",),)]
    assert home.agent.came_of(two) == []
    await allows(home, second)
    await home.closed()


async def test_what_ends_while_it_is_being_posted_hides_nothing(home: House) -> None:
    """The one behind it gets a message of its own."""
    await home.start()
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    two, _ = await wants_to_run(home, "echo two", session)
    three, _ = await wants_to_run(home, "echo three", session)
    await until(lambda: len(home.entries()) == 3, "all entries")
    home.api.control.fault(method="sendMessage", action="hang", hang_s=1.0, processed=True)
    await home.person.taps(first, "Allow once")
    await until(lambda: len(sent(home)) == 2, "the second on its way")
    home.agent.permit(two, "once")
    third = await home.person.sees("echo three", buttons=True)
    await allows(home, third)
    await home.closed()
    assert home.agent.came_of(three) == [(("once",),)]


@pytest.mark.parametrize(("later_s", "gone"), [(30, True), (IN_A_ROW_S + 60, False)])
async def test_what_comes_much_later_stands_alone(home: House, later_s: float, gone: bool) -> None:
    """The message of the one before stays for the record then."""
    await home.start()
    home.agent.finishes = False
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    await allows(home, first)
    await home.closed()
    home.clock.advance(later_s)
    await wants_to_run(home, "echo two", session)
    second = await home.person.sees("echo two", buttons=True)
    if gone:
        await home.person.gone(first)
    assert ("✅ Allowed once: echo one" in second.text) == gone
    assert home.person.message(first.message_id).deleted == gone


async def test_a_listener_that_was_killed_begins_a_message_of_its_own(home: House) -> None:
    """Whose message may be taken over is known to the listener that put it away, and to no other."""
    await home.start()
    home.agent.finishes = False
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    await wants_to_run(home, "echo two", session)
    await until(lambda: len(home.entries()) == 2, "both entries")
    await home.stop()
    await home.start()
    await allows(home, first)
    await home.noted(await home.person.sees("echo two", buttons=True))
    await home.stop()
    await home.start()
    await allows(home, await home.person.sees("echo two", buttons=True))
    await home.closed()


@BOTH
async def test_two_at_once_are_asked_one_after_the_other(home: House) -> None:
    """The second waits until the first is decided; another session's does not."""
    await home.start()
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    await wants_to_run(home, "echo two", session)
    await wants_to_run(home, "echo other")
    await home.person.sees("echo other")
    assert len(home.entries()) == 3
    assert home.person.find("echo two") is None
    await home.person.taps(first, "Allow once")
    second = await home.person.sees("echo two", buttons=True)
    await home.person.gone(first)
    await allows(home, second)
    await until(lambda: len(home.entries()) == 1, "the end of both")


async def test_the_end_of_one_wakes_the_next(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the person does not wait for the regular look at those that wait."""
    monkeypatch.setattr(permission_queue, "BEHIND_LOOK_S", 600.0)
    await home.start()
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    await wants_to_run(home, "echo two", session)
    await until(lambda: len(home.entries()) == 2, "both entries")
    await home.person.taps(first, "Allow once")
    await allows(home, await home.person.sees("echo two", buttons=True))
    await home.closed()


@BOTH
async def test_a_refusal_closes_what_its_session_asks_besides(home: House) -> None:
    """Contract 4: in silence, where nobody saw it; it is not taken for a word at the desk."""
    await home.start()
    _, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    second, _ = await wants_to_run(home, "echo two", session)
    await until(lambda: len(home.entries()) == 2, "both entries")
    await twice(home, first, REFUSE, "Yes, refuse")
    await home.person.sees("✋ Refused", buttons=False)
    await home.closed()
    assert home.agent.came_of(second) == [(("reject",),)]
    assert home.person.find("echo two") is None
    assert home.person.find("on the computer") is None


@BOTH
async def test_a_word_for_good_covers_its_like(home: House) -> None:
    """Contract 12: the other one of the session is let go by the same word, and what comes later is not asked."""
    await home.start()
    one, session = await wants_to_run(home, "echo one")
    first = await home.person.sees("echo one")
    two, _ = await wants_to_run(home, "echo two", session)
    await until(lambda: len(home.entries()) == 2, "both entries")
    await twice(home, first, "Always…", "Yes, always")
    await home.closed()
    assert home.agent.came_of(one) == home.agent.came_of(two) == [(("always",),)]
    assert home.agent.ask_permission("bash", ["echo three"]) == ""


@BOTH
async def test_a_folder_and_then_the_command(home: House) -> None:
    """One call asks twice: each gets its own word."""
    await home.start()
    folder = home.agent.ask_permission("external_directory", ["/etc/*"])
    command = home.agent.ask_permission("bash", ["ls /etc"], beside=folder)
    first = await home.person.sees("OpenCode wants to leave its project for:")
    await home.person.taps(first, "Allow once")
    second = await home.person.sees(RUN, buttons=True)
    await looks_at(home, second)
    await twice(home, second, REFUSE, "Yes, refuse")
    await home.closed()
    assert home.agent.came_of(folder) == [(("once",),)]
    assert home.agent.came_of(command) == [(("reject",),)]


# --- proof --------------------------------------------------------------------------------------------------------


@BOTH
async def test_a_refusal_with_a_word_is_proven_with_its_word(home: House) -> None:
    """Contract 4: the tool's own error holds it, the event does not."""
    await home.start()
    request_id, _ = await wants_to_run(home, "npm i")
    shown = await home.person.sees("npm i")
    await home.person.taps(shown, "✏️ Refuse with a reason")
    home.person.write("use\npnpm")
    await home.person.sees("✋ Refused: “use pnpm”", buttons=False)
    assert home.agent.came_of(request_id) == [(("reject", "use\npnpm"),)]


@BOTH
async def test_a_reason_that_was_only_offered_when_the_button_refused_was_not_used(home: House) -> None:
    """The agent does not get it, and its writer reads so."""
    await home.start()
    request_id, _ = await wants_to_run(home, "npm i")
    shown = await home.person.sees("npm i")
    home.person.write("no, use pnpm", to=shown)
    await home.person.sees("and tell the agent that?")
    await twice(home, shown, "✋ Refuse", "Yes, refuse")
    await home.person.sees("Your text “no, use pnpm” was not used")
    assert home.agent.came_of(request_id) == [(("reject",),)]


@BOTH
async def test_the_word_about_an_unused_reason_comes_before_the_next_permission(home: House) -> None:
    """Also if Telegram is slow just then: the permission is not put away as shown."""
    await home.start()
    first, session = await wants_to_run(home, "npm i")
    shown = await home.person.sees("npm i")
    home.person.write("no, use pnpm", to=shown)
    await home.person.sees("and tell the agent that?")
    await until(lambda: home.entry().phone.sides, "the offer is noted")
    await wants_to_run(home, "npm run build", session=session)
    home.api.control.fault(method="deleteMessage", action="hang", hang_s=1.0)
    home.agent.permit(first, "once")
    await home.person.sees("npm run build", buttons=True)
    await home.person.sees("Your text “no, use pnpm” was not used")
    await until(lambda: home.person.find("and tell the agent that?") is None, "the offer is deleted")


@BOTH
async def test_a_refusal_at_the_desk_that_was_first_is_told_as_such(home: House) -> None:
    """Not as an effect of the phone's own word on the same request, which had none."""
    await home.start()
    request_id, _ = await wants_to_run(home, "npm i")
    shown = await home.person.sees("npm i")
    home.agent.fault("permit", "lie")
    await home.person.taps(shown, "✏️ Refuse with a reason")
    home.person.write("use pnpm")
    await until(lambda: home.listener._parts.agent.errands.get(home.entry().id).sent_s, "the accepted word")
    home.agent.permit(request_id, "reject")
    await home.person.sees("🖥 Refused on the computer", buttons=False)


@BOTH
@pytest.mark.parametrize("by_us", [True, False])
async def test_a_request_that_comes_after_the_refusal_that_ends_it_names_it(home: House, *, by_us: bool) -> None:
    """Contract 4: a refusal ends all requests of its session, also one that Hermes hears of only then."""
    await home.start()
    first, session = await wants_to_run(home, "npm i")
    shown = await home.person.sees("npm i")
    if by_us:
        await twice(home, shown, REFUSE, "Yes, refuse")
    else:
        home.agent.permit(first, "reject")
    await home.closed()
    second, _ = await wants_to_run(home, "ls", session)
    await home.person.sees("ls", buttons=True)
    home.agent.permit(second, "reject")
    where = "together with another request" if by_us else "on the computer"
    await home.person.sees(f"Refused {where}", buttons=False)


@BOTH
async def test_a_refusal_at_the_desk_long_after_one_on_the_phone_is_told_as_such(home: House) -> None:
    """The model read the reason of the first one, and asked for something else."""
    await home.start()
    _, session = await wants_to_run(home, "npm i")
    shown = await home.person.sees("npm i")
    await home.person.taps(shown, "✏️ Refuse with a reason")
    home.person.write("use pnpm")
    await home.closed()
    home.clock.advance(LATE_ASK_S + 1.0)
    second, _ = await wants_to_run(home, "pnpm i", session)
    await home.person.sees("pnpm i", buttons=True)
    home.agent.permit(second, "reject")
    await home.person.sees("🖥 Refused on the computer", buttons=False)


@BOTH
async def test_an_always_at_the_desk_after_one_on_the_phone_is_told_as_such(home: House) -> None:
    """What an "always" covers is not asked any more: the one on the phone did not end a request that came later."""
    await home.start()
    _, session = await wants_to_run(home, "npm i")
    await twice(home, await home.person.sees("npm i"), "Always…", "Yes, always")
    await home.closed()
    second, _ = await wants_to_run(home, "ls", session)
    await home.person.sees("ls", buttons=True)
    home.agent.permit(second, "always")
    await home.person.sees("🖥 Always allowed on the computer", buttons=False)


@BOTH
async def test_a_lie_is_no_word(home: House) -> None:
    """Contract 4 and 10.4: `200 true` for nothing proves nothing; it is said again until its tool goes on."""
    await home.start()
    request_id, _ = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one")
    home.agent.fault("permit", "lie")
    await home.person.taps(shown, "Allow once")
    await until(lambda: home.listener._parts.agent.errands.get(home.entry().id).sent_s, "the accepted word")
    home.clock.advance(4)
    await home.person.sees("✅", buttons=False)
    assert home.agent.came_of(request_id) == [(("once",),)]


async def test_a_word_for_good_that_never_left_is_not_told_as_given(home: House) -> None:
    """The desk allowed it once, while nobody could be reached: its tool shows that it was allowed, and no more."""
    await home.start()
    request_id, _ = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one")
    home.agent.away()
    await twice(home, shown, "Always…", "Yes, always")
    await home.person.sees("can't be reached")
    home.agent.permit(request_id, "once")
    home.agent.back()
    await home.person.sees("✅ Allowed ·", buttons=False)
    await home.put_away()


async def test_a_word_that_may_never_have_left_is_told_as_far_as_it_is_known(home: House) -> None:
    """Allowed once on the phone, for good at the desk while nobody listened: that it was allowed is all one sees."""
    await home.start()
    request_id, _ = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one")
    home.agent.away()
    await home.person.taps(shown, "Allow once")
    await home.person.sees("can't be reached")
    await home.stop()
    home.agent.permit(request_id, "always")
    home.agent.back()
    await home.start()
    await home.person.sees("✅ Allowed ·", buttons=False)
    await home.put_away()


async def test_a_page_that_keeps_the_list_from_telling(home: House) -> None:
    """Contract 4: the list answers 400 while a page is asked for; the others go on, and so does that."""
    await home.start()
    page = home.agent.ask_permission("webfetch", ["http://127.0.0.1:9/"])
    shown = await home.person.sees("OpenCode wants to fetch:")
    request_id, _ = await wants_to_run(home, "echo one")
    await home.person.taps(await home.person.sees("echo one"), "Allow once")
    await until(lambda: home.agent.came_of(request_id), "its word")
    await twice(home, shown, REFUSE, "Yes, refuse")
    await home.closed()
    assert home.agent.came_of(page) == [(("reject",),)]


async def test_a_list_that_does_not_tell_now_is_read_again(home: House) -> None:
    """Contract 4, while nobody listened: no event tells of the others."""
    home.agent.ask_permission("bash", ["echo one"])
    home.agent.fault("permissions", "error", status=400)
    await home.start()
    await home.person.sees("echo one", buttons=True)


async def test_an_answer_that_cannot_be_delivered_hides_no_later_permission(home: House) -> None:
    """The server is away; its session goes on in a terminal, whose plugin asks for the next command."""
    await home.start()
    request_id, session = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one", buttons=True)
    home.agent.away()
    await home.person.taps(shown, "Allow once")
    await home.person.sees("can't be reached")
    request: dict[str, Any] = {
        "id": "per_2",
        "sessionID": session,
        "permission": "bash",
        "patterns": ["echo two"],
        "always": ["echo *"],
    }
    request |= {"metadata": {"command": "echo two"}, "tool": {"messageID": "msg_2", "callID": "call_2"}}
    with home.waiting("per_2"):
        home.hook("permission.asked", request, context={"title": "A session", "input": {"command": "echo two"}})
        await home.person.sees("echo two", buttons=True)
    home.agent.back()
    await until(lambda: home.agent.came_of(request_id), "the first word")


async def test_an_answer_for_a_machine_that_is_away_hides_no_later_permission(tmp_path: Path) -> None:
    """It may be away for days, and the later one is answerable meanwhile."""
    clock = count(1000.0)
    book = a_book(a_store(tmp_path, now=lambda: next(clock)))
    first, second = [await book.create(permission_ask(request_id=request_id)) for request_id in ("per_1", "per_2")]
    allowed = Decision("answer", 1001.0, (Answer((0,)),), ANN)
    sending = replace(first.state, phase="sending", decision=allowed)
    first = await book.change(first.id, lambda found: replace(found, state=sending, phone=Phone(11, 500)))
    queue = permission_queue.PermissionQueue(book, LOOK)
    assert await queue.wait_s(second) == permission_queue.BEHIND_LOOK_S
    await book.change(first.id, lambda found: replace(found, timing=replace(found.timing, away_at=0.0)))
    assert await queue.wait_s(second) is None


async def test_a_permission_that_cannot_be_put_away_hides_no_later_one(home: House) -> None:
    """Something stands in the place of its file."""
    await home.start()
    _, session = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one", buttons=True)
    fails_for(home.listener._store, "settle", home.entry().id, Stuck("a folder stands in its place"))
    await home.person.taps(shown, "Allow once")
    await home.person.sees("✅ Allowed once", buttons=False)
    await wants_to_run(home, "echo two", session=session)
    await home.person.sees("echo two", buttons=True)


@BOTH
async def test_a_refusal_whose_end_is_slow_was_not_allowed_at_the_desk(home: House) -> None:
    """Its event is lost with the connection, and its tool ends seconds later: what the agent was told counts."""
    await home.start()
    await wants_to_run(home, "rm -rf build")
    shown = await home.person.sees("rm -rf build", buttons=True)
    home.agent.hold_tools()
    await home.person.taps(shown, REFUSE)
    home.agent.hold_events()
    await home.person.taps(shown, "Yes, refuse")
    await home.person.sees("✋ Refused", buttons=False)
    home.agent.release_events(lost=True)
    home.agent.release_tools()
    await home.closed()
    assert not home.person.find("computer")


@BOTH
async def test_one_asked_while_nobody_listened_is_found(home: House) -> None:
    """By the list, with its whole command, which old tells by the call alone."""
    await home.start()
    await home.stop()
    home.agent.ask_permission("bash", ["echo one", "ls two"])
    await home.start()
    shown = await home.person.sees("echo one && ls two")
    assert shown.marked("pre") == ("echo one && ls two",)


@BOTH
async def test_a_zombie_is_never_told_a_word(home: House) -> None:
    """Contract 2 (zombies): its session was deleted, and a late "once" would run the command all the same."""
    await home.start()
    request_id, session = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one")
    home.agent.hold_events()
    home.agent.delete(session)
    home.person.tap(shown, "Allow once")
    await home.person.sees("came too late")
    assert home.agent.came_of(request_id) == []
    home.agent.release_events()


# --- without a port -----------------------------------------------------------------------------------------------


def a_request(request_id: str = "per_1", **more: Any) -> dict[str, Any]:
    """A permission as a plugin hands it over."""
    asked = {"permission": "bash", "patterns": ["npm i"], "metadata": {}, "always": ["npm *"]}
    return {"id": request_id, "sessionID": "ses_1", "tool": {"messageID": "msg_1", "callID": "call_1"}, **asked, **more}


async def test_a_hook_carries_the_word(portless: House) -> None:
    """The text for the plugin is the reply's body; the plugin's own event confirms it."""
    with portless.waiting("per_1"):
        portless.hook("permission.asked", a_request())
        shown = await portless.person.sees("npm i")
        await portless.person.taps(shown, "Allow once")
        ready = portless.listener._parts.agent.hooks
        await until(lambda: ready.is_ready(portless.entry().ask), "the answer laid ready")
        portless.hook("permission.replied", {"requestID": "per_1", "sessionID": "ses_1", "reply": "once"})
        await portless.person.sees("✅ Allowed once", buttons=False)
    await portless.closed()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"reply": "once"}, "🖥 Allowed on the computer"),
        ({"reply": "always"}, "🖥 Always allowed on the computer"),
        ({"reply": "reject"}, "🖥 Refused on the computer"),
        ({"reply": "reject", "message": "no"}, "🖥 Refused on the computer"),
    ],
)
async def test_a_plugin_tells_of_its_desk(portless: House, reply: dict[str, str], said: str) -> None:
    """The buttons go."""
    with portless.waiting("per_1"):
        portless.hook("permission.asked", a_request())
        await portless.person.sees("npm i")
        portless.hook("permission.replied", {"requestID": "per_1", "sessionID": "ses_1", **reply})
        await portless.person.sees(said, buttons=False)


@pytest.mark.parametrize("event", ["permission.replied", "session.idle"])
async def test_what_ends_all_of_a_session_at_the_desk_brings_none_of_it(portless: House, event: str) -> None:
    """Contract 4: the end of each is told by itself; the first is no reason to ring for the next."""
    session = {"sessionID": "ses_1"}
    with portless.waiting("per_1"), portless.waiting("per_2"):
        portless.hook("permission.asked", a_request())
        await portless.person.sees("npm i")
        portless.hook("permission.asked", a_request("per_2", patterns=["npm test"]))
        await until(lambda: len(portless.entries()) == 2, "both entries")
        portless.hook(event, {"requestID": "per_1", "reply": "reject", **session})
        await until(lambda: len(portless.entries()) == 1, "the end of the first")
        assert await portless.listener._parts.phone.posting._queue.wait_s(portless.entry())
        portless.hook(event, {"requestID": "per_2", "reply": "reject", **session})
        await portless.closed()
    assert not sent(portless, "npm test")


async def test_what_an_agent_gives_up_holds_no_other_one_if_it_goes_on_after_a_refusal(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code asks for two calls at once; one of them is decided at the desk, and the other one still waits."""
    monkeypatch.setattr(permission_queue, "REFUSING_S", 600.0)
    await home.start()

    def asks(request_id: str, command: str) -> None:
        tool = {"tool_name": "Bash", "tool_input": {"command": command}}
        asked = {"hook_event_name": "PermissionRequest", "session_id": "ses_1", "prompt_id": "p_1", "cwd": "/home/dev"}
        spool.drop(home.store, spool.record("claude-code", {**asked, **tool, "id": request_id}) | {"host": "laptop"})
        spool.nudge(home.store)

    with home.waiting("second", "claude-code"):
        with home.waiting("first", "claude-code"):
            asks("first", "npm i")
            await home.person.sees("npm i")
            asks("second", "npm test")
            await until(lambda: len(home.entries()) == 2, "both entries")
        await home.person.sees("npm test")


async def test_all_of_a_long_one_comes_as_a_file(portless: House) -> None:
    """On a tap; it goes again when the request is over."""
    with portless.waiting("per_1"):
        told = {"command": "echo " + "x" * 9000}
        portless.hook("permission.asked", a_request(metadata=told), context={"input": told})
        shown = await portless.person.sees(RUN)
        assert await portless.person.taps(shown, "📄 Show all of it") == "Here it comes"
        file = await portless.person.sees("All of it, as the agent wrote it.")
        assert file.reply_to == shown.message_id
        (call,) = portless.api.control.calls("sendDocument")
        assert "command.txt" in str(call.params["document"])
        portless.hook("permission.replied", {"requestID": "per_1", "sessionID": "ses_1", "reply": "once"})
        await portless.person.gone(file)


async def test_the_file_of_a_long_one_comes_again_on_a_further_tap(portless: House) -> None:
    """The person has deleted it, or it is far above."""
    with portless.waiting("per_1"):
        told = {"command": "echo " + "x" * 9000}
        portless.hook("permission.asked", a_request(metadata=told), context={"input": told})
        shown = await portless.person.sees(RUN)
        await portless.person.taps(shown, "📄 Show all of it")
        first = await portless.person.sees("All of it, as the agent wrote it.")
        await until(lambda: portless.entry().phone.sides, "the file noted")
        assert await portless.person.taps(shown, "📄 Show all of it") == "Here it comes"
        await portless.person.gone(first)
        second = await portless.person.sees("All of it, as the agent wrote it.")
        assert second.message_id != first.message_id


async def test_a_group_in_which_no_file_may_be_sent_gets_a_word_in_its_place(portless: House) -> None:
    """Texts still come there, so that the chat works."""
    with portless.waiting("per_1"):
        told = {"command": "echo " + "x" * 9000}
        portless.hook("permission.asked", a_request(metadata=told), context={"input": told})
        shown = await portless.person.sees(RUN)
        words = "Bad Request: not enough rights to send documents to the chat"
        portless.api.control.fault(method="sendDocument", action="error", status=400, description=words, times=9)
        assert await portless.person.taps(shown, "📄 Show all of it") == "Here it comes"
        word = await portless.person.sees("I may not send files in this group")
        assert word.reply_to == shown.message_id
        await until(lambda: portless.entry().phone.sides, "the word noted")
        assert not portless.listener._parts.phone.memory.at.trouble
        assert len(portless.api.control.calls("sendDocument")) == 1
        portless.hook("permission.replied", {"requestID": "per_1", "sessionID": "ses_1", "reply": "once"})
        await portless.person.gone(word)


async def test_the_file_is_sent_again_once_all_of_it_is_known(portless: House) -> None:
    """Its message cannot be edited, and would go on saying that this is a part."""
    with portless.waiting("per_1"):
        told = {"command": "echo " + "x" * 9000}
        portless.hook("permission.asked", a_request(metadata=told), context={"input": told})
        shown = await portless.person.sees(RUN)
        await portless.noted(shown)

        def known(entry: Entry, *, is_partial: bool) -> Entry:
            assert entry.ask.permission is not None
            return replace(entry, ask=replace(entry.ask, permission=replace(entry.ask.permission, partial=is_partial)))

        entries = portless.listener._parts.entries
        await entries.change(portless.entry().id, partial(known, is_partial=True))
        await portless.person.taps(shown, "📄 Show more of it")
        part = await portless.person.sees("As much of it as is known.")
        await until(lambda: portless.entry().phone.sides, "the file noted")
        await entries.change(portless.entry().id, partial(known, is_partial=False))
        await portless.person.gone(part)
        await portless.person.sees("All of it, as the agent wrote it.")


# --- the commands of the chat ---------------------------------------------------------------------------------------


async def test_the_commands_are_registered(home: House) -> None:
    """Behind the slash of every client."""
    await home.start()
    await until(lambda: home.api.control.calls("setMyCommands"), "the registration")
    home.person.write("/help")
    await home.person.sees("/lock – take no answers")
    home.person.write("/start")
    await until(lambda: len([one for one in home.person.shown() if "/open –" in one.text]) == 2, "the same again")


async def test_a_link_that_is_pressed_again_is_a_start(home: House) -> None:
    """It brings its old code along; that is no answer to anything. Other commands take nothing along."""
    await home.start()
    request_id = home.agent.ask([question()])
    shown = await home.person.sees("Which database?")
    home.person.write("/start wV3-x_9")
    await home.person.sees("/lock – take no answers")
    home.person.write("/open sesame", to=shown)
    await home.closed()
    assert home.agent.came_of(request_id) == [(("/open sesame",),)]


async def test_everything_open_is_posted_again(home: House) -> None:
    """At the end of the chat; the older messages go; nothing open is said."""
    await home.start()
    home.person.write("/open")
    await home.person.sees("Nothing is open just now")
    home.agent.ask([question()])
    await wants_to_run(home, "echo one")
    first, second = await home.person.sees("Which database?"), await home.person.sees("echo one")
    await home.noted(first)
    await home.noted(second)
    home.person.write("/open")
    await home.person.sees("Here are the 2 that are open:")
    await home.person.gone(first)
    await home.person.gone(second)
    again = await home.person.sees("echo one", buttons=True)
    await home.person.taps(again, "Allow once")
    await home.person.taps(await home.person.sees("Which database?", buttons=True), "SQLite")
    await home.closed()


async def test_open_does_not_say_that_the_ones_here_are_all(home: House) -> None:
    """The permissions of a session come one after the other: /status counts all of them."""
    await home.start()
    _, session = await wants_to_run(home, "echo one")
    await home.noted(await home.person.sees("echo one"))
    await wants_to_run(home, "echo two", session)
    await until(lambda: len(home.entries()) == 2, "both entries")
    home.person.write("/open")
    await home.person.sees("Here is one of the 2 that are open; the other one comes by itself:")


async def test_one_that_cannot_be_written_keeps_no_other_from_being_posted_again(home: House) -> None:
    """A newer Hermes has written it."""
    await home.start()
    home.agent.ask([question("First?")])
    await home.noted(await home.person.sees("First?"))
    first = home.entry().id
    home.agent.ask([question("Second?")])
    second = await home.person.sees("Second?")
    await home.noted(second)
    fails_for(home.listener._store, "change", first, TooNew("a newer Hermes wrote it"))
    home.person.write("/open")
    await home.person.gone(second)
    await home.person.sees("Second?", buttons=True)


async def test_what_was_posted_does_not_wait_for_the_desk_again(home: House) -> None:
    """It came at once, because the person was away; now they are back."""
    await home.start(questions={"post_after": "5m"})
    home.person.write("/away")
    await home.person.sees("away")
    home.agent.ask([question()])
    shown = await home.person.sees("Which database?", buttons=True)
    await home.noted(shown)
    home.person.write("/desk")
    await home.person.sees("5 min")
    home.person.write("/open")
    await home.person.gone(shown)
    await home.person.sees("Which database?", buttons=True)


async def test_status_tells_what_is_open_and_who_is_there(home: House) -> None:
    """In a few lines."""
    await home.start()
    home.person.write("/status")
    await home.person.sees("Nothing is open · listening on")
    await wants_to_run(home, "echo one")
    await home.person.sees("echo one")
    home.agent.away()
    await until(lambda: not home.listener._parts.agent.followers[0].is_connected, "the loss")
    home.person.write("/status")
    told = await home.person.sees("1 open, the oldest since")
    assert "echo one" in told.text
    assert "is not there" in told.text


async def test_a_locked_phone_takes_nothing_and_time_stands_still(home: House) -> None:
    """Until the machine unlocks it, also after a restart."""
    await home.start()
    request_id, _ = await wants_to_run(home, "echo one")
    shown = await home.person.sees("echo one")
    home.person.write("/lock")
    await home.person.sees("hermes unlock")
    assert "Locked" in await home.person.toast(home.person.tap(shown, "Allow once"))
    await home.stop()
    await home.start()
    home.person.write("/status")
    await until(lambda: len([one for one in home.person.shown() if "hermes unlock" in one.text]) == 2, "the same word")
    counted_s = home.listener._parts.times.clock.counted_s
    home.clock.advance(60.0)
    await until(lambda: home.listener._parts.phone.upkeep._is_locked, "the lock to be seen")
    assert home.listener._parts.times.clock.counted_s == counted_s
    assert home.agent.came_of(request_id) == []
    assert await home.listener._store.unlock_phone()
    assert not await home.listener._store.unlock_phone()
    await home.person.taps(shown, "Allow once")
    await home.closed()
    assert home.agent.came_of(request_id) == [(("once",),)]


async def test_another_bots_command_is_not_ours(home: House) -> None:
    """Nor is a word that only looks like one."""
    await home.start()
    await until(lambda: home.api.control.calls("setMyCommands"), "the registration")
    home.person.write("/lock@another_bot")
    home.person.write("/unknown")
    await home.person.sees("Tap a button below a question")
    assert not await home.listener._store.is_phone_locked()


# --- what was told in part only -----------------------------------------------------------------------------------

ALWAYS = "Always…"


async def in_part(home: House) -> ShownMessage:
    """Let the agent ask for a command when neither its events nor its server tell which."""
    home.agent.hold_events()
    await wants_to_run(home, "echo one")
    home.agent.fault("message", status=503, times=999)
    home.agent.release_events(backwards=True)
    asked = await home.person.sees("Only parts of the command")
    assert ALWAYS not in str(asked.labels)
    await home.noted(asked)
    return asked


async def test_a_command_that_came_in_part_is_completed(old: House) -> None:
    """Its server would not tell all of it at first: once it does, the whole command is shown, and may be given."""
    await old.start()
    asked = await in_part(old)
    old.agent.clear_faults()
    await until(lambda: ALWAYS in str(old.person.message(asked.message_id).labels), "the whole of it")
    assert "Only parts" not in old.person.message(asked.message_id).text


async def test_a_command_that_came_in_part_is_completed_by_the_next_listener(old: House) -> None:
    """Also where this one's tries were all in vain: every list of what is pending begins them anew."""
    await old.start()
    asked = await in_part(old)
    await old.stop()
    old.agent.clear_faults()
    await old.start()
    await until(lambda: ALWAYS in str(old.person.message(asked.message_id).labels), "the whole of it")
