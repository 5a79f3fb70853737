"""The step about several machines: choose the database that they share. It is accepted once it has answered."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hermes.commands.setup.context import Context
from hermes.commands.setup.file import PASSWORD_FILE
from hermes.commands.setup.given import StoreChange
from hermes.commands.setup.terminal import capital
from hermes.config.settings import AGENT_ONLY, Store
from hermes.config.values import secret_or_file
from hermes.errors import ConfigError, HermesError, StoreError
from hermes.storage.postgres.address import Address, need_psycopg

Check = Callable[[Address], Coroutine[Any, Any, object]]
"""Checks that this machine can use the database. Raises StoreError."""

_URL: Final = "--store-url URL"
_HOW: Final = "--store-password-file, --store-tls and --store-ca-file"
_PASSWORD: Final = "--store-password-file FILE, or --yes if it needs none"  # noqa: S105 (options)
_FORM: Final = "It looks like postgresql://hermes@db.example.org:5432/hermes; the password is asked for next."
_OTHER_BOT: Final = (
    "With another bot, what is open stays in the database, and its buttons no longer work. The machines that joined "
    "still ask through the bot of before: for each, run `hermes store add` with a new name, and let it join again."
)
_GAVE_UP: Final = "no database was connected"


@dataclass(frozen=True, slots=True)
class ChosenDatabase:
    """A database that answered, and the change of [store] that it needs."""

    address: Address
    change: StoreChange


def choose_database(context: Context, *, bot_id: int) -> ChosenDatabase | None:
    """Take the database from the options or the person; None leaves the store as it is. `bot_id`: the chosen bot.

    Without a person at the terminal, only an option chooses a database. If the person gives up, the rest is set up.

    Raises:
        ConfigError: an option cannot be used, or needs psycopg, which is missing.
        StoreError: the database of an option cannot be used. HermesError: as `Connecting.of_url`.
    """
    terminal, given, draft = context.terminal, context.given, context.draft
    there, is_asked = draft.settings.store, terminal.interactive and not given.store.one_machine
    url = there.url or None if given.store.url is None and given.store.says_how else given.store.url
    if url is None and not (there.url or is_asked):
        if given.store.says_how:
            raise ConfigError(f"{_HOW} say how to reach a database, and there is none: give {_URL} or --join URL, too.")
        return None
    terminal.title("Your machines")
    if there.address is not None and draft.config is not None and draft.config.telegram.bot_id != bot_id:
        terminal.warn(_OTHER_BOT)
    if url is not None:
        return Connecting(context, check_phone).of_url(url)
    if there.address is not None:
        if draft.lacks == AGENT_ONLY:
            _check_owner(there.address, context)
        terminal.done(f"They share the database {there.address.name}.")
        return None
    if not terminal.ask("Do agents run on more than one machine?", default=False, option=_URL):
        return None
    terminal.say(
        "They can share this bot through a PostgreSQL database (14 or newer) that each of them reaches: a server of "
        "your own, or a hosted one. Make an empty database there, and a user that owns it."
    )
    try:
        return Connecting(context, check_phone).of_person()
    except HermesError as error:
        terminal.warn(f"{capital(str(error))}.")
    terminal.say("All else is set up for this machine alone; run `hermes setup` again for the database.")
    return None


def _check_owner(address: Address, context: Context) -> None:
    """Check that a machine that gets the token can be the phone side, too. Raises ConfigError."""
    try:
        context.run(check_phone(address))
    except StoreError as error:
        raise ConfigError(
            f"{context.draft.place}: with the bot's token, this machine must reach the database as its owner, by the "
            f"url in [store] (`hermes setup --store-url URL`): {error}."
        ) from None


async def check_phone(address: Address) -> None:
    """Check that a machine with the bot's token can use the database. Raises as `checks.check_phone`."""
    from hermes.storage.postgres import checks  # noqa: PLC0415 (few have psycopg)

    await checks.check_phone(address)


async def make_tables(address: Address) -> None:
    """Make the tables of Hermes. Raises as `checks.make_tables`."""
    from hermes.storage.postgres import checks  # noqa: PLC0415 (few have psycopg)

    await checks.make_tables(address)


class Connecting:
    """Connects a database. Raises ConfigError: psycopg is missing."""

    def __init__(self, context: Context, check: Check) -> None:
        self._terminal, self._given, self._run, self._check = context.terminal, context.given, context.run, check
        self._there: Store = context.draft.settings.store
        self._has_bot = context.draft.config is not None
        self._password_file = context.draft.place.parent / PASSWORD_FILE
        try:
            need_psycopg()
        except ConfigError as error:
            raise ConfigError(f"a database {error}") from None

    def of_url(self, url: str) -> ChosenDatabase:
        """Return the database of this URL, with a password of the options or the person.

        Raises:
            ConfigError: the URL or the password file cannot be used, or no person can be asked.
            StoreError: as `check`. HermesError: the person gave up.
        """
        if wrong := self._wrong(url):
            raise ConfigError(f"the URL of the database {wrong}.")
        if self._given.store.password_file is not None or self._given.yes:
            address, file = self._known(url)
            self._answers(address)
            return self._chosen(address, file)
        while (chosen := self._with_typed_password(url)) is None:
            self._need_another_try()
        return chosen

    def of_person(self) -> ChosenDatabase:
        """Return the database whose URL and password a person types. Raises HermesError: the person gave up."""
        while True:
            question = "The URL of the database (postgresql://USER@HOST/DATABASE; Enter for none):"
            url = self._terminal.line(question, option=_URL)
            if not url:
                raise HermesError(_GAVE_UP)
            if wrong := self._wrong(url):
                self._terminal.warn(f"That URL {wrong}.")
                self._terminal.say(_FORM)
            elif (chosen := self._with_typed_password(url)) is not None:
                return chosen
            else:
                self._need_another_try()

    def _with_typed_password(self, url: str) -> ChosenDatabase | None:
        """Return the database, None if it does not accept this password. If a right one is there, nobody is asked."""
        address, file = self._known(url)
        if (file is not None or address.secret_files()) and self._is_right(address, say=False):
            return self._chosen(address, file)
        question = "The password of the database (it stays hidden; Enter for none):"
        typed = self._terminal.line(question, option=_PASSWORD, hidden=True)
        address = self._address(url, typed)
        if self._is_right(address, say=True):
            return self._chosen(address, self._password_file if typed else None, typed)
        return None

    def _known(self, url: str) -> tuple[Address, Path | None]:
        """Return the database with the password of the options, or of the configuration if it has this URL.

        Raises ConfigError: the file of the password cannot be read.
        """
        file = self._given.store.password_file or (self._there.password_file if url == self._there.url else None)
        try:
            return self._address(url, secret_or_file("", file, "--store-password-file")), file
        except ValueError as error:
            raise ConfigError(f"the password of the database {error}.") from None

    def _is_right(self, address: Address, *, say: bool) -> bool:
        try:
            self._answers(address)
        except StoreError as error:
            if say:
                self._terminal.warn(f"{capital(str(error))}.")
            return False
        return True

    def _answers(self, address: Address) -> None:
        with self._terminal.waiting("Asking the database…"):
            self._run(self._check(address))
        self._terminal.done(f"The database {address.name} answers.")

    def _chosen(self, address: Address, file: Path | None, typed: str = "") -> ChosenDatabase:
        given = self._given.store
        self._tell_what_stays(address)
        return ChosenDatabase(address, StoreChange(address.url, typed, file, given.tls, given.ca_file))

    def _tell_what_stays(self, address: Address) -> None:
        """Say, while nothing is changed yet, that what is open in the database of before does not come along."""
        before = self._there.address
        if before is None or before.url == address.url:
            return
        self._terminal.warn(
            f"Until now, it was the database {before.name}. If that is another one, what is open there stays there, "
            "and its buttons on the phone no longer work."
        )
        if self._has_bot:
            way = "leave this with Ctrl-C, and run" if self._terminal.interactive else "before such a change, run"
            self._terminal.say(f"To bring along what this machine has asked: {way} `hermes store move files`.")

    def _address(self, url: str, password: str) -> Address:
        given = self._given.store
        return Address(url, password, given.tls or self._there.tls, given.ca_file or self._there.ca_file)

    def _wrong(self, url: str) -> str:
        """Return the end of a sentence about a URL that cannot be used, "" for a right one."""
        try:
            self._address(url, "").check()
        except ConfigError as error:
            return str(error)
        return ""

    def _need_another_try(self) -> None:
        if not self._terminal.again():
            raise HermesError(_GAVE_UP)
