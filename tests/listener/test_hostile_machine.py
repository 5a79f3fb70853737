"""What somebody with the database password of an agent-only machine cannot do to the other machines."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import psycopg

from hermes.hook import spool
from hermes.listener.phone import prompt_texts
from hermes.model.notice import Notice
from hermes.storage.codec import NOTICES
from hermes.storage.postgres import roles
from hermes.storage.postgres.identity import Identity
from hermes.storage.postgres.store import PostgresStore
from tests.listener.test_machines import ASKED, card_of, lists_of, three  # noqa: F401
from tests.listening import question, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes.model.entry import Entry
    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.postgres import Database
    from tests.listener.test_machines import Machine

TRAP = {"text": "Paint the shop. Reply to this with your prompt.", "header": "", "options": []}


class Thief:
    """Uses the password of a machine whose listener has left."""

    def __init__(self, laptop: Machine, machine: str, parameters: dict[str, Any]) -> None:
        self.connection = psycopg.connect(**parameters, autocommit=True)
        self._laptop = laptop
        self._machine = machine
        self._bot = laptop.config().telegram.bot_id
        self.channel = Identity(laptop.store, "", self._bot).channel()
        self.connection.execute(f"LISTEN {self.channel}".encode())
        [(self._agent, body)] = self.connection.execute("SELECT agent, body::text FROM hermes.entries").fetchall()
        self._body = str(body)

    def hears(self, kind: str) -> list[str]:
        """The ids of the asks or records of this kind that were changed meanwhile."""
        news = [one.payload.split() for one in self.connection.notifies(timeout=1.0)]
        return list(dict.fromkeys(words[1] for words in news if words[0] == kind))

    async def asks(self, entry_id: str, *questions: dict[str, Any], post_after_s: float = 0.0, host: str = "") -> Entry:
        """Insert an ask with this id, and wait until the phone side has taken it in."""
        self.inserts(entry_id, *questions, post_after_s=post_after_s, host=host)
        self.tells(entry_id)
        entries = self._laptop.listener._parts.entries
        return await until(
            lambda: (found := entries.get(entry_id)) and (found if found.phone.chat_id else None), "the hostile ask"
        )

    def inserts(self, entry_id: str, *questions: dict[str, Any], post_after_s: float = 0.0, host: str = "") -> None:
        """Insert an ask with this id."""
        told = json.loads(self._body)
        told["entry"]["id"] = entry_id
        ask = told["entry"]["ask"]
        ask["source"] |= {"request_id": f"que_{entry_id}", "call_id": None, "session_id": f"ses_{entry_id}"}
        ask["source"] |= {"host": host} if host else {}
        ask["capabilities"]["post_after_s"] = post_after_s
        ask["questions"] = [*questions] or ask["questions"]
        told["entry"]["state"]["answers"] = [{"picks": [], "text": None}] * len(ask["questions"])
        statement = """
            INSERT INTO hermes.entries
                (bot, id, machine, owner, agent, wait_id, code, phase, revision, asked_s, body)
            VALUES (%s, %s, %s, current_user, %s, 'w', '', 'open', 1, %s, %s)
        """
        now_s = self._laptop.clock.now()
        values = [self._bot, entry_id, self._machine, self._agent, now_s, json.dumps(told)]
        self.connection.execute(statement, values)

    def notes(self, notice_id: str) -> None:
        """Insert a notice with this id, and tell of it."""
        notice = Notice(notice_id, "opencode", "ses_1", machine=self._machine)
        statement = "INSERT INTO hermes.records (bot, kind, id, machine, revision, body) VALUES (%s, %s, %s, %s, 1, %s)"
        body = NOTICES.encode(notice).decode()
        self.connection.execute(statement, [self._bot, "notices", notice_id, self._machine, body])
        self.tells(notice_id, "notices")

    def tells(self, thing_id: str, kind: str = "entries") -> None:
        """Tell the phone side that this ask or record was changed."""
        self.connection.execute("SELECT pg_notify(%s, %s)", [self.channel, f"{kind} {thing_id} x"])


@asynccontextmanager
async def thief(laptop: Machine, workstation: Machine, database: Database, **sections: Any) -> AsyncIterator[Thief]:
    """The password of the workstation, which had asked something; the laptop has the phone."""
    await laptop.start(**sections)
    user, secret = f"workstation {secrets.token_hex(4)}", "a secret"
    store = laptop.listener._store
    assert isinstance(store, PostgresStore)
    await roles.add(store._connection, user, secret, laptop.config().telegram.bot_id)
    workstation.address = database.address(quote(user), secret)
    try:
        await workstation.start(settle=False, telegram={}, **sections)
        await until(lambda: workstation.agent.sinks, "an event stream")
        workstation.agent.ask([question()])
        await laptop.noted(await laptop.person.sees(ASKED))
        await workstation.stop()
        parameters = cast("dict[str, Any]", workstation.address.parameters())
        hostile = Thief(laptop, spool.machine(workstation.store), parameters)
        with hostile.connection:
            yield hostile
    finally:
        await laptop.stop()
        database.ask(roles.removal(user))


async def stopping_card(laptop: Machine, title: str) -> ShownMessage:
    """The card of this session, which works, after the first of the two taps that stop it."""
    laptop.person.write("/stop")
    assert await laptop.person.taps(await laptop.person.sees("stop", buttons=True), title) == "Sure? One more tap."
    return await until(
        lambda: next((one for one in laptop.person.shown() if "Yes, stop" in str(one.labels)), None), "the second tap"
    )


async def test_an_ask_with_the_id_of_a_card_draws_no_prompt_to_itself(
    three: tuple[Machine, ...],  # noqa: F811
    database: Database,
) -> None:
    """A button of the card finds the card, and its message stays the card's."""
    laptop, workstation, _ = three
    async with thief(laptop, workstation, database, prompts={"enabled": True}) as hostile:
        session = laptop.agent.session("Paint the shop")
        card = await card_of(laptop, laptop, "Paint the shop")
        (card_id,) = hostile.hears("cards")
        await hostile.asks(card_id, TRAP, post_after_s=1e6)
        assert "Type your prompt" in await laptop.person.taps(card, "✏️ Write a prompt")
        laptop.person.write("The new password is tulip", to=card)
        await until(lambda: laptop.agent.texts_of(session) == ["The new password is tulip"], "the prompt")
        found = hostile.connection.execute("SELECT body::text FROM hermes.entries").fetchall()
        assert "tulip" not in str(found)
        assert "Reply to this" not in laptop.person.message(card.message_id).text


async def test_an_ask_with_the_id_of_a_prompt_keeps_no_tap_from_it(
    three: tuple[Machine, ...],  # noqa: F811
    database: Database,
) -> None:
    """A cancelled prompt is not sent, and its line stays."""
    laptop, workstation, _ = three
    async with thief(laptop, workstation, database, prompts={"enabled": True}) as hostile:
        session = laptop.agent.session("Paint the shop")
        laptop.agent.take_time(session)
        card = await card_of(laptop, laptop, "Paint the shop")
        laptop.person.write("First this", to=card)
        await until(lambda: laptop.agent.texts_of(session), "the first prompt")
        hostile.hears("prompts")
        laptop.person.write("Then delete everything", to=card)
        line = await laptop.person.sees("Waits for the current turn", buttons=True)
        for prompt_id in hostile.hears("prompts"):
            await hostile.asks(prompt_id)
        assert await laptop.person.taps(line, "✖️ Cancel") == prompt_texts.TOASTS["withdrawn"]
        await laptop.person.sees("✖️ Cancelled")
        assert not laptop.person.message(line.message_id).deleted


async def test_back_of_a_card_finds_no_ask(three: tuple[Machine, ...], database: Database) -> None:  # noqa: F811
    """Both have such a button; the message that was tapped decides."""
    laptop, workstation, _ = three
    async with thief(laptop, workstation, database, prompts={"enabled": True}) as hostile:
        session = laptop.agent.session("Paint the shop")
        laptop.agent.take_time(session)
        idle = await card_of(laptop, laptop, "Paint the shop")
        laptop.person.write("First this", to=idle)
        await until(lambda: laptop.agent.texts_of(session), "the prompt")
        card = await stopping_card(laptop, "Paint the shop")
        for card_id in hostile.hears("cards"):
            await hostile.asks(card_id)
        assert await laptop.person.taps(card, "Back") == ""
        await until(lambda: "⏹ Stop" in str(laptop.person.message(card.message_id).labels), "the card as it was")
        assert not laptop.person.message(card.message_id).deleted


async def test_stop_of_a_card_finds_no_notice(three: tuple[Machine, ...], database: Database) -> None:  # noqa: F811
    """Both have such a button, and a notice can be written with the id of the card."""
    laptop, workstation, _ = three
    async with thief(laptop, workstation, database, prompts={"enabled": True}) as hostile:
        session = laptop.agent.session("Paint the shop")
        laptop.agent.take_time(session)
        idle = await card_of(laptop, laptop, "Paint the shop")
        laptop.person.write("First this", to=idle)
        await until(lambda: laptop.agent.texts_of(session), "the prompt")
        card = await stopping_card(laptop, "Paint the shop")
        for card_id in hostile.hears("cards"):
            hostile.notes(card_id)
            await until(lambda found=card_id: laptop.listener._parts.kept.notices.get(found), "the hostile notice")  # type: ignore[misc]
        assert await laptop.person.taps(card, "Yes, stop") == "Stopping"


async def test_rows_that_are_kept_locked_hold_up_no_other(
    three: tuple[Machine, ...],  # noqa: F811
    database: Database,
) -> None:
    """Neither questions and taps, nor the list of sessions."""
    laptop, workstation, _ = three
    async with thief(laptop, workstation, database, prompts={"enabled": True}) as hostile:
        laptop.agent.session("Paint the shop")
        await lists_of(laptop, workstation)
        names = [f"aaaa{number:04}" for number in range(30)]
        for name in names:
            hostile.inserts(name)
        with hostile.connection.transaction():
            hostile.connection.execute("SELECT id FROM hermes.entries FOR UPDATE")
            hostile.connection.execute("SELECT id FROM hermes.records FOR UPDATE")
            for name in names:
                database.ask("SELECT pg_notify(%s, %s)", hostile.channel, f"entries {name} x")
            entries = laptop.listener._parts.entries
            await until(lambda: all(entries.get(name) for name in names), "the hostile asks")
            began = time.monotonic()
            request_id = laptop.agent.ask([question("Which colour?")])
            shown = await laptop.person.sees("Which colour?")
            await laptop.person.taps(shown, "SQLite")
            await until(lambda: laptop.agent.came_of(request_id), "the answer")
            assert time.monotonic() - began < 15.0
            laptop.person.write("/sessions")
            await laptop.person.sees("Paint the shop", buttons=True)
