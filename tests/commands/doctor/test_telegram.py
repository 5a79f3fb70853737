"""The bot under the doctor's eyes, on the strict local Bot API; nothing is sent and no update is confirmed."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.chat.poll import CONFLICT
from hermes.commands.doctor import telegram
from hermes.commands.doctor.checkup import mend
from hermes.model.chat_memory import ChatMemory
from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi
from hermes.storage import process_lock
from tests.commands.doctor.patient import Patient, a_token, named, told
from tests.sandbox.raw_bot import raw_bot, texts

TEAM, SMALL = -1001234567890, -77
WATCH_S = 4.0


def a_group(tmp_path: Path, chat: Chat, **more: Any) -> Iterator[Patient]:
    """A machine whose chat is this group."""
    with running_botapi(token=a_token(), chats=[Chat(1001), chat], **more) as api:
        patient = Patient(tmp_path, api)
        patient.write(chat_id=chat.id)
        yield patient


@pytest.fixture
def group(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Patient]:
    """A supergroup, as the test wants it."""
    yield from a_group(tmp_path, Chat(TEAM, "Team", **getattr(request, "param", {})))


async def test_all_is_well(healthy: Patient, api: RunningBotApi) -> None:
    """Each check is one good line; no message, no confirmed update, no changed wish for kinds of updates."""
    api.phone.write("still there?")
    found = await telegram.look(healthy.around())
    assert told(found) == dict.fromkeys(["token", "webhook", "other pollers", "chat", "writing"], "good")
    assert named(found, "token").seen == "of @hermes_demo_bot"
    assert [one for one in api.phone.messages() if one.from_bot] == []
    assert api.phone.state().pending_update_count == 1
    assert not {"offset", "allowed_updates"} & set(api.phone.calls("getUpdates")[0].params)


# --- the token -----------------------------------------------------------------------------------------


async def test_a_token_that_telegram_does_not_know_is_two_lines(healthy: Patient) -> None:
    """All else needs it, and says so once; the token itself is nowhere."""
    healthy.write(token=f"1{healthy.token}")
    found = await telegram.look(healthy.around())
    assert told(found) == {"token": "broken", "all else": "warning"}
    assert "@BotFather" in found[0].mend
    assert healthy.token not in str(found)


async def test_a_telegram_out_of_reach_is_two_lines(patient: Patient) -> None:
    """Nobody listens on that port."""
    found = await telegram.look(patient.around())
    assert told(found) == {"reach": "broken", "all else": "warning"}
    assert "cannot be reached" in found[0].seen


async def test_a_telegram_that_never_answers_is_given_up(healthy: Patient, api: RunningBotApi) -> None:
    """After three seconds."""
    api.phone.fault("getMe", "hang", hang_s=120)
    began_s = time.monotonic()
    found = await telegram.look(healthy.around())
    assert time.monotonic() - began_s < 60
    assert told(found) == {"reach": "broken", "all else": "warning"}


async def test_another_server_at_that_address_is_told_as_such(healthy: Patient, api: RunningBotApi) -> None:
    """A proxy's page is not an answer from Telegram."""
    api.phone.fault("getMe", "html", status=502)
    assert "not an answer from Telegram" in (await telegram.look(healthy.around()))[0].seen


async def test_a_proxy_that_cannot_be_used_is_a_finding(healthy: Patient) -> None:
    """One sentence, without the password of its URL."""
    healthy.write(proxy="socks5://ann:hush-hush@127.0.0.1:9")
    found = await telegram.look(healthy.around())
    assert found[0].verdict == "broken"
    assert "hush" not in str(found)


# --- who gets the updates ------------------------------------------------------------------------------


async def test_a_webhook_is_found_and_taken_away_without_loss(healthy: Patient, api: RunningBotApi) -> None:
    """Its host is named, its path (often a secret) is not; what waits stays."""
    api.phone.write("I wait")
    with raw_bot(api) as bot:
        bot("setWebhook", url="https://hooks.example.org/s3cret-path")
    found = await telegram.look(healthy.around())
    webhook = named(found, "webhook")
    assert (webhook.verdict, named(found, "other pollers").verdict) == ("broken", "warning")
    assert "hooks.example.org" in webhook.seen
    assert "s3cret" not in str(found)
    assert (await mend([webhook]))[0].startswith("The webhook was deleted")
    assert named(await telegram.look(healthy.around()), "webhook").verdict == "good"
    assert api.phone.state().pending_update_count == 1


async def test_another_poller_is_found(healthy: Patient, rival: None) -> None:
    """It was thrown out by our poll, came back, and threw us out."""
    found = named(await telegram.look(healthy.around(watch_s=15)), "other pollers")
    assert (found.verdict, found.seen) == ("broken", "another program receives taps and texts of this bot")
    assert "/revoke" in found.mend


async def test_nobody_else_is_no_finding(healthy: Patient, api: RunningBotApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll was held for all the time; a text that came meanwhile is still there."""
    monkeypatch.setattr(telegram, "CALL_S", 30.0)
    looking = asyncio.create_task(telegram.look(healthy.around(watch_s=WATCH_S)))
    await asyncio.to_thread(api.phone.wait_for_poll)
    api.phone.write("in the middle of it")
    assert named(await looking, "other pollers").verdict == "good"
    with raw_bot(api) as bot:
        assert texts(bot("getUpdates")) == ["in the middle of it"]


async def test_an_update_that_waits_ends_the_watch(healthy: Patient, api: RunningBotApi) -> None:
    """A rival would have taken it; it stays for the listener."""
    api.phone.write("mine!")
    began_s = time.monotonic()
    found = named(await telegram.look(healthy.around(watch_s=30)), "other pollers")
    assert (found.verdict, time.monotonic() - began_s < 20) == ("good", True)
    assert api.phone.state().pending_update_count == 1


async def test_a_slow_telegram_is_waited_for(healthy: Patient, api: RunningBotApi) -> None:
    """Each call may take its time; a watch that takes too long is no proof of anything."""
    for method in ("getWebhookInfo", "getUpdates"):
        api.phone.fault(method, "hang", hang_s=1, processed=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telegram, "CALL_S", 30.0)
        found = told(await telegram.look(healthy.around()))
    assert (found["webhook"], found["other pollers"]) == ("good", "good")
    api.phone.fault("getUpdates", "hang", hang_s=20)
    found = told(await telegram.look(healthy.around()))
    assert (found["webhook"], found["other pollers"]) == ("good", "warning")


async def test_our_own_listener_is_not_disturbed(healthy: Patient, api: RunningBotApi) -> None:
    """It says itself whether it met somebody; no poll goes out."""
    bot_id = int(healthy.token.partition(":")[0])
    await healthy.store.save_chat(ChatMemory(bot_id))
    with process_lock.hold_bot(bot_id, "/elsewhere", "hermes listen, store x"):
        found = named(await telegram.look(healthy.around()), "other pollers")
        assert (found.verdict, found.seen) == (
            "good", f"hermes listen, store x (pid {os.getpid()}) polls, and told of none"
        )  # fmt: skip
        await healthy.store.save_chat(ChatMemory(bot_id, trouble=CONFLICT))
        found = named(await telegram.look(healthy.around()), "other pollers")
        assert found.verdict == "broken"
        assert CONFLICT in found.seen
    assert not api.phone.calls("getUpdates")


async def test_a_listener_that_starts_just_then_is_no_rival(healthy: Patient, api: RunningBotApi) -> None:
    """It throws our poll out; its lock tells that it is ours."""
    bot_id = int(healthy.token.partition(":")[0])
    looking = asyncio.create_task(telegram.look(healthy.around(watch_s=WATCH_S)))
    await asyncio.to_thread(api.phone.wait_for_poll)
    with process_lock.hold_bot(bot_id, "/elsewhere", "hermes listen"), raw_bot(api) as bot:
        await asyncio.to_thread(lambda: bot("getUpdates", timeout=1))
        assert "polls, and told of none" in named(await looking, "other pollers").seen


# --- the chat ------------------------------------------------------------------------------------------


async def test_a_chat_that_nobody_started_is_broken(healthy: Patient) -> None:
    """A bot cannot write first."""
    healthy.write(chat_id=4711, users=[4711])
    found = named(await telegram.look(healthy.around()), "chat")
    assert (found.verdict, found.seen) == ("broken", "Telegram knows no chat 4711 of this bot")
    assert found.mend.startswith("open https://t.me/hermes_demo_bot and press Start there")


async def test_a_person_who_blocked_the_bot_is_told(healthy: Patient, api: RunningBotApi) -> None:
    """And what to do about it."""
    api.phone.block()
    found = named(await telegram.look(healthy.around()), "writing")
    assert (found.verdict, "blocked by the user" in found.seen) == ("broken", True)
    assert "unblock" in found.mend


async def test_a_group_that_threw_the_bot_out_is_told(group: Patient) -> None:
    """Whatever else the bot may read of it."""
    assert group.api
    group.api.phone.block(chat=TEAM)
    found = named(await telegram.look(group.around()), "writing")
    assert (found.verdict, "kicked" in found.seen) == ("broken", True)


@pytest.mark.parametrize("group", [{"standing": "restricted"}], indirect=True)
async def test_a_muted_bot_is_told(group: Patient) -> None:
    """It may show that it types, and may not write: its membership says so."""
    found = named(await telegram.look(group.around()), "writing")
    assert (found.verdict, found.seen) == ("broken", "@hermes_demo_bot may not write in 'Team'")


@pytest.mark.parametrize(
    ("member", "chat", "may"),
    [
        ({}, {}, True),
        ({"status": "creator"}, {}, True),
        ({"status": "member"}, {"permissions": {"can_send_messages": False}}, False),
        ({"status": "member"}, {"permissions": {"can_send_messages": True}}, True),
        ({"status": "restricted", "is_member": True, "can_send_messages": True}, {}, True),
        ({"status": "left"}, {}, False),
        ({"status": "kicked"}, {}, False),
    ],
)
def test_who_may_write(member: dict[str, Any], chat: dict[str, Any], may: bool) -> None:
    """A private chat has no membership; a plain member may what the group lets all do."""
    assert telegram._may_write(chat, member) is may


async def test_a_group_with_privacy_mode_is_a_warning(group: Patient) -> None:
    """What it means, and the way to switch it off; a private chat has no such line."""
    found = named(await telegram.look(group.around()), "privacy mode")
    assert found.verdict == "warning"
    assert "must reply" in found.seen
    assert "buttons work anyway" in found.seen
    assert found.mend.startswith("@BotFather, /setprivacy, Disable")


@pytest.mark.parametrize("group", [{"standing": "administrator"}], indirect=True)
async def test_an_administrator_sees_what_is_typed(group: Patient) -> None:
    """Privacy mode does not count for one, and it was seen that it does not."""
    assert named(await telegram.look(group.around()), "privacy mode").verdict == "good"


async def test_a_bot_without_privacy_mode_is_well(tmp_path: Path) -> None:
    """In a group too."""
    for patient in a_group(tmp_path, Chat(SMALL, "Three of us"), privacy_mode=False):
        found = await telegram.look(patient.around())
        assert named(found, "privacy mode").verdict == "good"
        assert named(found, "chat").seen == "group chat 'Three of us'"


async def test_a_group_that_became_a_supergroup_is_followed(tmp_path: Path) -> None:
    """First by its refusal, then by what the listener remembers; the new id is told."""
    for patient in a_group(tmp_path, Chat(SMALL, "Three of us")):
        assert patient.api
        new = patient.api.phone.migrate(chat=SMALL)
        found = named(await telegram.look(patient.around()), "chat")
        assert (found.verdict, found.mend) == ("warning", f"set telegram.chat_id = {new}")
        bot_id = int(patient.token.partition(":")[0])
        await patient.store.save_chat(ChatMemory(bot_id, chat_id=new, moved_from=SMALL))
        found = named(await telegram.look(patient.around()), "chat")
        assert (found.verdict, found.mend) == ("warning", f"set telegram.chat_id = {new}")
        assert "new id" in found.seen


# --- topics --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "verdict", "words"),
    [
        ({}, "warning", "off in this group"),
        ({"forum": True}, "warning", "may not make any"),
        ({"forum": True, "standing": "administrator"}, "warning", "may not make any"),
        ({"forum": True, "standing": "administrator", "manages_topics": True}, "good", "can be a prompt"),
    ],
    indirect=["group"],
)
async def test_topics_in_a_group(group: Patient, verdict: str, words: str) -> None:
    """They must be on, and the bot must be an administrator with that right."""
    group.write(chat_id=TEAM, topics="session")
    found = named(await telegram.look(group.around()), "topics")
    assert found.verdict == verdict
    assert words in found.seen


async def test_topics_in_a_private_chat(healthy: Patient, api: RunningBotApi) -> None:
    """@BotFather switches them on; nothing is said of them if the configuration has none."""
    healthy.write(topics="project")
    found = named(await telegram.look(healthy.around()), "topics")
    assert (found.verdict, "Threaded Mode" in found.mend) == ("warning", True)
    api.phone.topics_mode(on=True)
    assert named(await telegram.look(healthy.around()), "topics").verdict == "good"
