"""The control side of the local Bot API, its faults, and its life as a process."""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hermes.sandbox.botapi import Chat, RunningBotApi, User, World, running_botapi, spawn_botapi
from hermes.sandbox.botapi.methods import METHODS
from hermes.sandbox.botapi.serving import BotApiServer
from hermes.sandbox.botapi.wire import Params
from tests.harness.processes import until
from tests.sandbox.raw_bot import Background, RawBot, Refused

ANN, BEN, STRANGER = 1001, 1002, 6006
TEAM = -1001234567890


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A fresh server: trouble must not spread."""
    people = [User(ANN, "Ann", "ann"), User(BEN, "Ben")]
    with running_botapi(users=people, chats=[Chat(ANN), Chat(BEN), Chat(TEAM, "Team")]) as api:
        yield api


# what a test sees


def test_a_message_shows_all_its_versions(api: RunningBotApi, bot: RawBot) -> None:
    """Final text and buttons, flags, and what it said before."""
    sent = bot.send("First", "A", disable_notification=True)
    edit = {"chat_id": ANN, "message_id": sent["message_id"], "text": "Second", "entities": BOLD}
    bot("editMessageText", **edit, link_preview_options={"is_disabled": True})
    message = api.phone.message_with("Second")
    assert (message.silent, message.edited, message.deleted, message.labels) == (True, True, False, ())
    assert [(version.text, len(version.rows)) for version in message.versions] == [
        ("First", 1),
        ("Second", 0),
    ]
    assert message.marked("bold") == ("Sec",)
    assert api.phone.calls("editmessagetext")[0].params["link_preview_options"] == {"is_disabled": True}
    with pytest.raises(TimeoutError, match="'Second'"):
        api.phone.message_with("First", 0.1)


BOLD = [{"type": "bold", "offset": 0, "length": 3}]


async def test_a_test_in_the_same_process_waits_for_content(api: RunningBotApi) -> None:
    """Control.wait_for looks again after each change, in any event loop."""
    later = threading.Timer(0.05, api.phone.write, ["now"])
    later.start()
    messages = await api.control.wait_for(api.control.messages, 60)
    assert [message.text for message in messages] == ["now"]
    with pytest.raises(TimeoutError):
        await api.control.wait_for(api.control.toasts, 0.05)
    later.join()


def test_the_control_side_needs_its_secret(api: RunningBotApi) -> None:
    """Without it there is nothing there; a wrong act is told apart."""
    for method in (httpx.get, httpx.post):
        assert method(f"{api.base_url}/control/guess/state", trust_env=False).status_code == 404
    assert httpx.post(f"{api.control_url}dance", trust_env=False).status_code == 404
    assert httpx.post(f"{api.control_url}advance", json={"years": 1}, trust_env=False).status_code == 400
    for nothing in ("nothing", "wait", "messages?chat_id=5x", "messages?chat_id=-5"):
        assert httpx.get(f"{api.control_url}{nothing}", trust_env=False).status_code == 400
    with pytest.raises(LookupError, match="400"):
        api.phone.fault("getMe", "explode")  # type: ignore[arg-type]


# trouble on demand


def test_an_update_can_come_again_and_in_any_shape(api: RunningBotApi, bot: RawBot) -> None:
    """Redelivered after its confirmation under the same id; injected as it is."""
    api.phone.write("once")
    update = bot("getUpdates")[0]
    assert bot("getUpdates", offset=update["update_id"] + 1) == []
    api.phone.redeliver(update["update_id"])
    assert bot("getUpdates", offset=update["update_id"] + 1) == [update]
    assert bot("getUpdates", offset=update["update_id"] + 1) == []
    number = api.phone.inject({"message": {"date": "yesterday"}})
    assert bot("getUpdates") == [{"update_id": number, "message": {"date": "yesterday"}}]
    assert number == update["update_id"] + 1
    api.phone.inject({"update_id": 5, "poll": []})
    assert bot("getUpdates", offset=number + 1) == [{"update_id": 5, "poll": []}]
    with pytest.raises(LookupError, match="never was"):
        api.phone.redeliver(17)


def test_the_update_of_a_message_can_come_again(api: RunningBotApi, bot: RawBot) -> None:
    """The message itself; after an edit, the edit."""
    (message_id,) = api.phone.write("once")
    (written,) = bot("getUpdates")
    api.phone.repeat(message_id)
    assert bot("getUpdates", offset=written["update_id"] + 1) == [written]
    api.phone.rewrite(message_id, "twice")
    (edited,) = bot("getUpdates", offset=written["update_id"] + 1)
    api.phone.repeat(message_id)
    assert bot("getUpdates", offset=edited["update_id"] + 1) == [edited]
    assert edited["edited_message"]["text"] == "twice"
    with pytest.raises(LookupError, match="never was"):
        api.phone.repeat(message_id + 1)


@pytest.mark.parametrize("status", [401, 404, 409, 500])
def test_a_fault_answers_with_a_status(api: RunningBotApi, bot: RawBot, status: int) -> None:
    """Once, for its method only, and nothing is done."""
    api.phone.fault("sendMessage", status=status)
    assert bot("getMe")
    assert bot.refused("sendMessage", status, chat_id=ANN, text="x")
    assert api.phone.messages() == ()
    assert bot.send()


def test_a_fault_can_skip_repeat_and_be_taken_back(api: RunningBotApi, bot: RawBot) -> None:
    """After one good call two bad ones; clear_faults forgets the rest."""
    api.phone.fault("*", retry_after_s=7, skip=1, times=3)
    assert bot("getMe")
    with pytest.raises(Refused) as refusal:
        bot("getMe")
    assert refusal.value.body["parameters"] == {"retry_after": 7}
    assert refusal.value.retry_after == "7"
    assert bot.refused("getMe", 429).endswith("retry after 7")
    api.phone.clear_faults()
    assert bot("getMe")
    assert [call.status for call in api.phone.calls("getMe")] == [200, 429, 429, 200]


def test_trouble_for_a_poll_ends_the_held_one(api: RunningBotApi, bot: RawBot) -> None:
    """It answers with nothing, and the next poll meets the fault."""
    poll = Background(lambda: bot("getUpdates", timeout=50))
    api.phone.wait_for_poll()
    api.phone.fault("getUpdates", status=409)
    assert poll.answer() == []
    assert "Conflict" in bot.refused("getUpdates", 409, timeout=50)


def test_a_person_who_blocked_the_bot_can_not_write_to_it(api: RunningBotApi) -> None:
    """Not before unblocking it."""
    api.phone.block()
    with pytest.raises(LookupError, match="blocked"):
        api.phone.write("hello")
    assert api.phone.state().blocked == (ANN,)
    api.phone.unblock()
    assert api.phone.write("hello") == (1,)


def test_a_proxy_answers_in_html(api: RunningBotApi, bot: RawBot) -> None:
    """502 with a page, as from a load balancer."""
    api.phone.fault("sendMessage", "html", status=502)
    response = bot.http.post("sendMessage", json={"chat_id": ANN, "text": "x"})
    assert (response.status_code, response.headers["content-type"]) == (502, "text/html; charset=utf-8")


@pytest.mark.parametrize(("action", "delivered"), [("cut", 0), ("cut_after", 1)])
def test_a_cut_connection_tells_nothing(api: RunningBotApi, bot: RawBot, action: Any, delivered: int) -> None:
    """The client sees the same error whether the message was delivered or not."""
    api.phone.fault("sendMessage", action)
    with pytest.raises(httpx.RemoteProtocolError):
        bot.send()
    assert len(api.phone.messages()) == delivered
    assert api.phone.calls("sendMessage")[0].status == 0


@pytest.mark.parametrize("processed", [False, True])
def test_a_hanging_call_may_have_been_delivered(api: RunningBotApi, bot: RawBot, processed: bool) -> None:
    """The client gives up; the message is there or not."""
    api.phone.fault("sendMessage", "hang", hang_s=30, processed=processed)
    with pytest.raises(httpx.ReadTimeout):
        bot.http.post("sendMessage", json={"chat_id": ANN, "text": "x"}, timeout=httpx.Timeout(10, read=0.3))
    api.phone.wait(lambda: any(call.took_s for call in api.phone.calls("sendMessage")), what="its end")
    assert len(api.phone.messages()) == int(processed)


def test_what_hangs_can_be_let_go(api: RunningBotApi, bot: RawBot) -> None:
    """clear_faults ends the wait: the processed call is answered."""
    api.phone.fault("sendMessage", "hang", hang_s=30, processed=True)
    sending = Background(bot.send)
    api.phone.message_with("Which one?")
    api.phone.clear_faults()
    assert sending.answer()["text"] == "Which one?"


def test_what_is_let_go_before_it_hangs_is_answered_at_once(
    api: RunningBotApi, bot: RawBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The faults are cleared while the call takes effect: a person may see the message before the wait begins."""

    def sent(world: World, params: Params) -> object:
        message = send_message(world, params)
        world.faults.clear()
        return message

    send_message = METHODS["sendMessage"]
    monkeypatch.setitem(METHODS, "sendMessage", sent)
    api.phone.fault("sendMessage", "hang", hang_s=600, processed=True)
    assert bot.send()["text"] == "Which one?"


# as a process


def test_the_server_runs_as_a_process_of_its_own() -> None:
    """The same phone; the token is not in its arguments; it ends when it is told to."""
    chats = [Chat(ANN), Chat(TEAM, "Team", topics=(7, 8))]
    with spawn_botapi(chats=chats, rate_scale=1, privacy_mode=False) as api:
        with httpx.Client(base_url=f"{api.base_url}/bot{api.token}/", trust_env=False) as http:
            bot = RawBot(http)
            assert bot.send(chat_id=TEAM, message_thread_id=8)["chat"]["title"] == "Team"
            poll = Background(lambda: bot("getUpdates", timeout=50))
            api.phone.wait_for_poll()
            api.phone.write("plain", chat=TEAM, thread_id=7)
            assert poll.answer()[0]["message"]["message_thread_id"] == 7
            poll = Background(lambda: bot("getUpdates", timeout=50, offset=-1))
            poll.answer()
        assert not any(api.token in str(argument) for argument in api.process.args)  # type: ignore[union-attr]
    assert api.process.returncode is not None


def test_answers_are_not_held_back_by_nagle() -> None:
    """Without the protocol named, asyncio leaves Nagle on and a kept connection costs 40 ms a call."""
    server = BotApiServer(World())
    try:
        assert server.socket.proto == socket.IPPROTO_TCP
    finally:
        server.socket.close()


def test_the_process_ends_with_its_parent() -> None:
    """The end of its standard input is the end of it."""
    with spawn_botapi() as api:
        assert api.process.stdin is not None
        api.process.stdin.close()
        assert api.process.wait(10) == 0


def test_who_takes_no_answer_is_cut_off_at_the_end() -> None:
    """A client that is frozen; what were left open would be complained of in the middle of a later test."""
    with socket.socket() as deaf, running_botapi() as api:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", int(api.base_url.rpartition(":")[2])))
        for _ in range(10):
            api.control.write("€" * 4096)
        deaf.sendall(50 * f"GET /bot{api.token}/getUpdates HTTP/1.1\r\nHost: here\r\n\r\n".encode())

        def is_stuck() -> bool:
            before = len(api.phone.calls("getupdates"))
            time.sleep(0.2)  # what counts is that no further request is taken in this time
            return 0 < before == len(api.phone.calls("getupdates")) < 50

        until(is_stuck, what="an answer that finds no room")
    gc.collect()
