"""Makes the changes that the answers ask for: write the file, connect agents, start the listener, try it.

If a part after the writing fails, the person is told, and the later parts are still done.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from hermes.chat.screens import hints
from hermes.commands.ask import phone_question
from hermes.commands.install import Agent, connect
from hermes.commands.setup import file
from hermes.commands.setup.background import Background, listener_need
from hermes.commands.setup.bot import ChosenBot
from hermes.commands.setup.context import Context
from hermes.commands.setup.database import ChosenDatabase, make_tables
from hermes.commands.setup.given import Changes
from hermes.commands.setup.people import ChosenPeople
from hermes.commands.setup.terminal import capital
from hermes.commands.store.move import bring
from hermes.config import reading as configuration
from hermes.config.settings import Config
from hermes.errors import ChatError, ConfigError, Held, HermesError, NotSaved

TEST_S = 300.0


@dataclass(frozen=True, slots=True)
class Plan:
    """All answers to the questions of the setup. An agent-only machine has no bot, no people and no test."""

    changes: Changes
    agents: tuple[Agent, ...]
    service: bool
    database: ChosenDatabase | None = None
    bot: ChosenBot | None = None
    people: ChosenPeople | None = None
    test: bool = False


class Finish:
    """Carries a plan out. `saved`: the configuration is written; `ok` is false once a later part has failed."""

    def __init__(self, context: Context) -> None:
        self.ok, self.saved = True, False
        self._listens = self._always_listens = self._has_services = True
        self._terminal, self._place, self._environ = context.terminal, context.draft.place, context.environ
        self._connect, self._run = context.connect, context.run

    def carry_out(self, plan: Plan, background: Background) -> None:
        """Make all changes. Raises as `save`."""
        changed = self.save(plan)
        self.saved = True
        config = configuration.load(self._place, environ=file.without_asked(self._environ))
        self._warn_of_shell(config)
        self._greet(plan, has_prompts=config.prompts.enabled)
        self._tell_prompts(plan)
        self.connect_agents(plan, config)
        has_bot = self._listen(plan, config, background, changed=changed)
        if plan.test and has_bot:
            self.test(config)
        self._farewell(config)

    def save(self, plan: Plan) -> bool:
        """Write the configuration; return whether it changed. If the disk refuses, the person may try again.

        Raises:
            ConfigError, NotSaved: as `file.write`.
            StoreError: the tables cannot be made in the database.
        """
        self._terminal.title("Setting up")
        if plan.database is not None and plan.bot is not None:
            self._run(make_tables(plan.database.address))
        changed = self._written(plan.changes)
        self._terminal.done(f"{self._place} {'is written; only you can read it' if changed else 'stays as it was'}.")
        return changed

    def _written(self, changes: Changes) -> bool:
        while True:
            try:
                return file.write(self._place, changes, environ=self._environ)
            except NotSaved as error:
                if not self._terminal.again(f"{error}."):
                    raise

    def _warn_of_shell(self, config: Config) -> None:
        """Warn of the variables of this shell that override the written configuration."""
        with suppress(ConfigError):
            if _asked(configuration.load(self._place, environ=self._environ)) == _asked(config):
                return
        names = ", ".join(sorted(self._environ.keys() - file.without_asked(self._environ).keys()))
        self._terminal.warn(
            f"{names} in this shell overrides the configuration for programs that you start here: unset it."
        )

    def _greet(self, plan: Plan, *, has_prompts: bool) -> None:
        """Send a message to a chat that is new: this shows whether the bot may write there."""
        if plan.bot is None or plan.people is None or not plan.people.is_new:
            return
        chat_id, name = plan.people.chat_id, plan.bot.me.username
        try:
            with self._terminal.waiting("Saying hello in the chat…"):
                self._run(self._greeting(plan.bot.token, chat_id, has_prompts=has_prompts))
        except ChatError as error:
            self._failed(f"The bot cannot write to the chat {chat_id} ({error}).")
            start = f"Open https://t.me/{name} and press Start."
            self._terminal.say(start if chat_id > 0 else f"Add @{name} to the group.")
        else:
            self._terminal.done("Said hello in the chat.")

    async def _greeting(self, token: str, chat_id: int, *, has_prompts: bool) -> None:
        async with self._connect(token) as api:
            await api.send(chat_id, hints.connected(has_prompts=has_prompts))

    def _tell_prompts(self, plan: Plan) -> None:
        """Say that prompts were switched on or off, if they were."""
        if plan.changes.prompts is not None:
            self._terminal.done(
                "Your phone may send prompts." if plan.changes.prompts else "Your phone may no longer send prompts."
            )

    def connect_agents(self, plan: Plan, config: Config) -> None:
        """Connect each agent of the plan."""
        for agent in plan.agents:
            self._part(
                lambda agent=agent: connect(agent, config, self._place, environ=self._environ)  # type: ignore[misc]
            )

    def _listen(self, plan: Plan, config: Config, background: Background, *, changed: bool) -> bool:
        """Restart the listener with these settings: as a service if wanted, else as it ran before.

        In between, what is open moves into a database that was connected. Return whether no other listener has the bot.
        """
        self._part(lambda: self._look_who_listens(background))
        if changed or plan.service:
            self._part(background.stop)
        if changed and plan.database is not None and not self._part(lambda: self._run(bring(config))):
            self._terminal.say("Once that is solved, `hermes store move database` brings the open questions along.")
        if plan.service and self._part(background.start_service):
            self._listens = self._always_listens = True
        self._part(background.back)
        if not plan.service:
            self._part(background.wake_service)
        return self._part(lambda: self._need_bot(background, config))

    def _look_who_listens(self, background: Background) -> None:
        self._listens, self._always_listens = background.will_listen(), background.always_listens()
        self._has_services = background.has_services()

    def _need_bot(self, background: Background, config: Config) -> None:
        """Check that a listener can start here. Raises Held: one of another store has the bot. StoreError."""
        has_own_bot = config.phone is not None and not config.store.url
        holder = background.other_listener(config.telegram.bot_id) if has_own_bot else None
        if holder is not None:
            raise Held(
                f"{holder} holds this bot, for another store, so no listener can start here. End it, or give one of "
                "the two a bot of its own."
            )

    def test(self, config: Config) -> None:
        """Ask the test question, and print the answer."""
        asked = {**phone_question.TEST, "ttl_s": TEST_S}  # the phone shows when the question ends
        try:
            with self._terminal.waiting("A question is on its way to your phone: please answer it there…"):
                told = self._run(phone_question.ask(config, self._place, asked, timeout_s=TEST_S))
        except HermesError as error:
            self._failed(f"{error}")
            return
        match told.kind:
            case "unanswered":
                self._failed("No answer came within five minutes. `hermes status` says whether Telegram was reached.")
            case _ if told.by == "timer":
                self._failed("No answer came before the time to answer ran out.")
            case "answer":
                answer = ", ".join(word for notices in told.answers for word in notices)
                self._terminal.done(f"Your answer arrived: {answer}")
            case _:
                self._terminal.done("You sent the question away, and that arrived.")

    def _farewell(self, config: Config) -> None:
        """Tell the person whether all is done, and the next step."""
        terminal, has_phone, has_prompts = self._terminal, config.phone is not None, config.prompts.enabled
        brings_others = has_phone and config.store.url != ""
        why = listener_need(has_prompts=has_prompts, brings_others=brings_others)
        if not self.ok:
            terminal.title("Saved, but not all of it works yet: see above, then run `hermes setup` again.")
        elif not self._listens:
            terminal.title("Saved, but nothing listens yet, so your phone would not ring.")
            terminal.say(self._how_to_listen("Hermes listen for good"))
        else:
            rings = "When an agent asks something, your phone rings."
            comes = "Ask your agent something: its question comes to the phone."
            terminal.title(f"All set. {rings if has_phone else comes}")
            if why is not None and not self._always_listens:
                terminal.warn(f"{capital(why.waits)} until a listener runs. {self._how_to_listen('one run always')}")
            elif has_prompts and has_phone:
                terminal.say("To write to an agent, send /sessions in the chat.")
        if brings_others:
            terminal.say("For the next machine: `hermes store add NAME`.")

    def _how_to_listen(self, always: str) -> str:
        if self._has_services:
            return f"`hermes install service` lets {always}, `hermes listen` for as long as it runs."
        return "No service can run here: let `hermes listen` run all the time."

    def _part(self, work: Callable[[], Iterable[str] | None]) -> bool:
        """Call `work`, print what it returns, or its HermesError, and return whether it succeeded.

        The first sentence says what was done. The others say what follows from it, so they get no tick.
        """
        try:
            for place, sentence in enumerate(work() or ()):
                (self._terminal.say if place else self._terminal.done)(sentence)
        except HermesError as error:
            self._failed(str(error))
            return False
        return True

    def _failed(self, sentence: str) -> None:
        self.ok = False
        self._terminal.warn(sentence)


def _asked(config: Config) -> tuple[object, ...]:
    """Return the values that the setup asks for."""
    telegram, store = config.phone, config.store
    phone = telegram and (telegram.token, telegram.chat_id, telegram.users)
    return phone, config.prompts.enabled, store.url, store.password_file
