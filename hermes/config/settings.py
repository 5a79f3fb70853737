"""The configuration keys: one field for each, with its default, its check and its description.

The description names correct values; `reading` builds error sentences from it, and `values` has the checks of values.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import platformdirs
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hermes.config.values import (
    FullPath,
    MaybePath,
    MaybeProxy,
    MaybeQuietHours,
    MaybeSeconds,
    Paths,
    Seconds,
    Secret,
    Url,
    Whole,
    Wholes,
    Words,
    Zone,
    checked_url,
    is_here,
    secret_or_file,
)
from hermes.core.notices import NoticeRules
from hermes.core.permission_rules import Rules
from hermes.errors import ConfigError
from hermes.storage.postgres.address import Address


def is_token(text: str) -> bool:
    """Tell whether the text has the form of a bot token."""
    return re.fullmatch(r"\d+:[A-Za-z0-9_-]{20,}", text) is not None


def _secret(description: str) -> Any:
    """Return a key for a secret. The key for its file comes before it (`_its_file`)."""
    return Field(default=SecretStr(""), validate_default=True, description=description)


def _its_file(what: str) -> Any:
    """Return a key for the file that holds a secret."""
    return Field(default=None, description=f'the path of a file that holds the {what} and nothing else, or "none"')


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Telegram(_Section):
    """The bot, the chat and the users who may answer."""

    token_file: MaybePath = _its_file("token")
    token: Secret = _secret('the token that @BotFather gave, such as "123456789:AA…", or be in token_file')
    chat_id: Whole = Field(description="the numeric id of the chat, such as 123456789, negative for a group")
    users: Wholes = Field(description="a list of the numeric ids of those who may answer, such as [123456789]")
    api_base: Url = Field(
        default="https://api.telegram.org",
        description='the http(s) URL of a Bot API server, such as "https://api.telegram.org"',
    )
    topics: Literal["off", "project", "session"] = Field(default="off", description='"off", "project" or "session"')
    proxy: MaybeProxy = Field(default=None, description='the URL of an http, https or socks5 proxy, or "none"')
    ca_file: MaybePath = Field(default=None, description='the path of a PEM file of certificate authorities, or "none"')

    @field_validator("token")
    @classmethod
    def _some_token(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value():
            raise ValueError("is missing")
        if not is_token(value.get_secret_value()):
            raise ValueError("does not look like a token")
        return value

    @field_validator("chat_id")
    @classmethod
    def _some_chat(cls, value: int) -> int:
        if value == 0:
            raise ValueError("is 0, which is not a chat")
        return value

    @field_validator("users")
    @classmethod
    def _people(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value:
            raise ValueError("is empty, so nobody could answer")
        if min(value) <= 0:
            raise ValueError("contains an id that is not a person's")
        return tuple(dict.fromkeys(value))

    @property
    def bot_id(self) -> int:
        """The id of the bot: the part of the token before the colon, which is not secret."""
        return int(self.token.get_secret_value().partition(":")[0])


class Questions(_Section):
    """How long a question waits, when the phone rings, and how much context is shown. Times are in seconds."""

    ttl: Seconds = Field(default=1800.0, gt=0, description='a duration above zero, such as "30m"')
    on_expiry: Literal["reject", "recommended", "skip", "keep"] = Field(
        default="reject", description='"reject", "recommended", "skip" or "keep"'
    )
    remind_at: MaybeSeconds = Field(
        default=None, gt=0, description='a duration above zero, such as "10m", which doubles each time, or "none"'
    )
    post_after: Seconds = Field(default=0.0, ge=0, description='a duration such as "20s"; "0s" is at once')
    quiet_hours: MaybeQuietHours = Field(
        default=None, description='two times of the day such as "22:00-07:00", or "none"'
    )
    tz: Zone = Field(
        default="local", description='a time zone such as "Europe/Berlin", or "local" for the machine\'s own'
    )
    context_chars: Whole = Field(default=600, ge=0, le=3000, description="a whole number from 0 to 3000")

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of the times on the phone; None is the zone of the machine, as for `datetime.astimezone`."""
        return None if self.tz == "local" else ZoneInfo(self.tz)


class Permissions(_Section):
    """Which permissions agents may ask for on the phone, and how a permission ends without an answer."""

    mode: Literal["ask", "off"] = Field(default="ask", description='"ask" or "off"')
    on_expiry: Literal["reject", "keep"] = Field(default="reject", description='"reject" or "keep"')
    always: bool = Field(default=True, description="true or false")
    never_always: Words = Field(
        default=(
            *("rm", "dd", "mkfs", "shutdown", "reboot", "git push", "npm publish"),
            # These run other commands: allowing one of them for good would allow everything.
            *("sudo", "su", "doas", "env", "command", "exec", "eval", "nohup", "timeout", "xargs", "find"),
            *("bash", "sh", "zsh"),
        ),
        description='a list of the first words of commands, such as ["rm", "git push"]',
    )
    without_projects: Paths = Field(default=(), description='a list of folders or of their names, such as ["shop-api"]')
    without_tools: Words = Field(default=(), description='a list of the agent\'s names for its tools, such as ["edit"]')

    @property
    def rules(self) -> Rules:
        """These settings as the value that `core.permission_rules` takes."""
        return Rules(
            wanted=self.mode == "ask",
            always=self.always,
            never_always=self.never_always,
            without_projects=self.without_projects,
            without_tools=self.without_tools,
        )


class Notices(_Section):
    """Which turns of agents the phone hears of when they end."""

    enabled: bool = Field(default=True, description="true or false")
    finished: Seconds = Field(default=120.0, ge=0, description='a duration such as "2m"; "0s" is every turn')

    def rules(self, *, has_prompts: bool) -> NoticeRules:
        """Return these settings as the value that `core.notices` takes."""
        return NoticeRules(self.enabled, self.finished, has_prompts)


class Prompts(_Section):
    """Whether the phone may send prompts to agents, to which projects, and the program that hears voice notes."""

    enabled: bool = Field(default=False, description="true or false")
    projects: Paths = Field(default=(), description='a list of folders or of their names, such as ["shop-api"]')
    transcribe: Paths = Field(
        default=(), description='a program and its arguments, such as ["/home/me/bin/hear", "--language", "en"]'
    )

    @property
    def writable(self) -> tuple[str, ...] | None:
        """The projects that the phone may write to, () for all; None if prompts are off."""
        return self.projects if self.enabled else None


class Store(_Section):
    """Where the entries are, in a folder or in a database, and how long settled entries are kept, in seconds."""

    path: FullPath = Field(
        default_factory=lambda: platformdirs.user_state_path("hermes"),
        description='the absolute path of a folder, such as "~/.local/state/hermes"',
    )
    keep_done: Seconds = Field(default=604800.0, ge=0, description='a duration such as "7d"')
    password_file: MaybePath = _its_file("password")
    ca_file: MaybePath = Field(default=None, description='the path of a PEM file of certificate authorities, or "none"')
    tls: Literal["verify-full", "off"] = Field(default="verify-full", description='"verify-full" or "off"')
    url: str = Field(
        default="",
        description='a URL without password such as "postgresql://user@host:5432/dbname", or "" for the folder',
    )

    @property
    def address(self) -> Address | None:
        """The database, or None if the entries are in the folder. Raises ConfigError: as `values.secret_or_file`."""
        try:
            password = secret_or_file("", self.password_file, "password_file")
        except ValueError as error:
            raise ConfigError(f"The password of the database {error}.") from None
        return Address(self.url, password, self.tls, self.ca_file) if self.url else None

    @field_validator("password_file")
    @classmethod
    def _some_password(cls, value: Path | None) -> Path | None:
        try:
            secret_or_file("", value, "password_file")
        except ValueError as error:
            raise ValueError(f"has no password: it {error}") from None
        return value

    @field_validator("url")
    @classmethod
    def _some_database(cls, value: str, info: ValidationInfo) -> str:
        """Check the URL with the keys before it; if one of those is wrong, its own error counts."""
        if value and {"tls", "ca_file"} <= info.data.keys():
            try:
                Address(value, tls=info.data["tls"], ca_file=info.data["ca_file"]).check()
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return value


class Matching(_Section):
    """How often, and how many seconds apart, Hermes looks for a request that the server does not list yet."""

    tries: Whole = Field(default=20, ge=1, description="a whole number, 1 or more")
    delay: Seconds = Field(default=0.3, ge=0, description='a duration such as "300ms"')


class OpenCode(_Section):
    """One OpenCode server with an HTTP port."""

    name: str = Field(default="opencode", min_length=1, description="a short name that no other server has")
    url: Url = Field(description='an http(s) URL without user name or password, such as "http://127.0.0.1:4096"')
    username: str = Field(default="opencode", description="the user name that the server wants")
    password_file: MaybePath = _its_file("password")
    password: Secret = _secret('the password that the server wants, "" for none, or be in password_file')

    @property
    def is_here(self) -> bool:
        """Tell whether the URL means this machine: a loopback address, or "localhost"."""
        return is_here(self.url)


def _state_folder() -> Path:
    """Return the folder in which OpenCode 2 keeps its file, on a Mac as well: platformdirs names another one there."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


class OpenCode2(_Section):
    """The OpenCode 2 server of this user, which is found by its own file."""

    enabled: bool = Field(default=True, description="true or false")
    file: FullPath = Field(
        default_factory=lambda: _state_folder() / "opencode" / "service.json",
        description='the absolute path of a file, such as "~/.local/state/opencode/service.json"',
    )


class Log(_Section):
    """The level and the file of the log."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value),
    ] = Field(default="info", description='"debug", "info", "warning" or "error"')
    file: FullPath = Field(
        default_factory=lambda: platformdirs.user_log_path("hermes") / "hermes.log",
        description='the absolute path of a file, such as "~/.local/state/hermes/log/hermes.log"',
    )


class Monitor(_Section):
    """The monitoring service that Hermes pings every minute; the service raises an alarm if the pings stop."""

    ping_url_file: MaybePath = _its_file("URL")
    ping_url: Secret = _secret(
        'an http(s) URL such as "https://hc-ping.com/your-uuid", "" for none, or be in ping_url_file'
    )

    @field_validator("ping_url")
    @classmethod
    def _some_url(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            checked_url(value.get_secret_value(), login=True, query=True)
        return value


AGENT_ONLY = (
    "this machine is agent-only: its questions are in the database of [store] url, and another machine, which has the "
    "bot's token, brings them to the phone. This one needs [telegram] and the database's owner in [store] for that."
)


class Config(_Section):
    """All settings, checked and frozen; the `repr` shows no secret.

    `phone` is the table [telegram], None on an agent-only machine: one whose store is in a database, and which has no
    such table, or an empty one. Code of the phone side uses `telegram`.
    """

    phone: Telegram | None = Field(default=None, alias="telegram", description="a table [telegram]")
    questions: Questions = Field(default=Questions(), description="a table [questions]")
    permissions: Permissions = Field(default=Permissions(), description="a table [permissions]")
    notices: Notices = Field(default=Notices(), description="a table [notices]")
    prompts: Prompts = Field(default=Prompts(), description="a table [prompts]")
    store: Store = Field(default_factory=Store, description="a table [store]")
    matching: Matching = Field(default=Matching(), description="a table [matching]")
    opencode: tuple[OpenCode, ...] = Field(
        default=(), description="tables [[opencode]] in double brackets, one a server, each with its own name"
    )
    opencode2: OpenCode2 = Field(default_factory=OpenCode2, description="a table [opencode2]")
    log: Log = Field(default_factory=Log, description="a table [log]")
    monitor: Monitor = Field(default_factory=Monitor, description="a table [monitor]")

    @model_validator(mode="before")
    @classmethod
    def _needed(cls, value: object) -> object:
        """Let [telegram] be absent if the store is in a database; without one, report the keys that it must have."""
        if not isinstance(value, dict) or value.get("telegram"):
            return value
        store = value.get("store")
        in_database = bool(store.get("url") if isinstance(store, dict) else getattr(store, "url", ""))
        return value | {"telegram": None if in_database else value.get("telegram", {})}

    @property
    def telegram(self) -> Telegram:
        """The bot, the chat and the users. Raises ConfigError: this machine is agent-only."""
        if self.phone is None:
            raise ConfigError(AGENT_ONLY)
        return self.phone

    def secret_files(self) -> tuple[Path, ...]:
        """Return the files that the configuration names for secrets: nobody else may read them. Raises ConfigError."""
        named = [self.phone.token_file if self.phone else None, self.monitor.ping_url_file]
        named += [server.password_file for server in self.opencode]
        if (address := self.store.address) is not None:
            named += [self.store.password_file, *address.secret_files()]
        return tuple(path for path in named if path is not None)

    def placed(self, *, store: Path | None, log_file: Path | None) -> "Config":
        """Return the same settings with this store folder or log file, if one is given."""
        changes: dict[str, BaseModel] = {}
        if store is not None:
            changes["store"] = self.store.model_copy(update={"path": store.absolute()})
        if log_file is not None:
            changes["log"] = self.log.model_copy(update={"file": log_file.absolute()})
        return self.model_copy(update=changes)

    @field_validator("opencode")
    @classmethod
    def _own_names(cls, value: tuple[OpenCode, ...]) -> tuple[OpenCode, ...]:
        if len({server.name for server in value}) < len(value):
            raise ValueError("has two servers of one name")
        if "opencode2" in {server.name for server in value}:
            raise ValueError('has a server named "opencode2", which is the one that Hermes finds by itself')
        return value


SECTIONS: dict[str, type[BaseModel]] = {
    "telegram": Telegram,
    "questions": Questions,
    "permissions": Permissions,
    "notices": Notices,
    "prompts": Prompts,
    "store": Store,
    "matching": Matching,
    "opencode": OpenCode,
    "opencode2": OpenCode2,
    "log": Log,
    "monitor": Monitor,
}
