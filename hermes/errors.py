"""Every error that Hermes raises.

    HermesError
    ├── ConfigError            a setting is missing, unknown or wrong (exit status 2)
    ├── Held                   another listener holds the bot or the store (exit status 3)
    ├── ServiceError           the machine's service manager is not there, refused, or could not start Hermes
    ├── StoreError
    │   ├── NotSaved           nothing changed on disk: full, read-only, not ours
    │   ├── Stuck              one file cannot be read, replaced or put away; the others can be saved
    │   ├── Conflict           somebody else changed the entry first
    │   ├── Missing            there is no such entry
    │   ├── Unreadable         the file is damaged; it was moved to quarantine
    │   └── TooNew             the file was written by a newer Hermes; it was left untouched
    ├── PayloadError           what an agent handed over has another shape
    ├── AgentError             `permanent` says whether trying again can help
    │   ├── AgentAway          no connection, a time-out, a 5xx: trying again can help
    │   └── AgentRefused       a 4xx or an answer of another shape: it cannot
    │       ├── Unauthorized   the password is wrong
    │       └── NotThere       404: no such request, session or message
    └── ChatError              `permanent` as above
        ├── ChatAway           no connection, a time-out, a 5xx, a 429 (`retry_after_s`)
        ├── Undelivered        it may or may not have arrived: the connection broke after sending
        └── ChatRefused        400 and 403 (`blocked`, `moved_to`), 401 and 404 of the token

Messages name what, where and what to do; none ever holds a token or a password.
"""


class HermesError(Exception):
    """The root: whoever catches this catches everything that Hermes raises by itself."""


class ConfigError(HermesError):
    """A setting is missing, unknown or wrong: file, key, what is wrong, what would be right."""


class Held(HermesError):
    """Another process holds the lock that this one needs."""


class ServiceError(HermesError):
    """The machine's service manager is not there, refused, or could not start Hermes."""


class StoreError(HermesError):
    """The store could not do what was asked; what was there is unchanged."""


class NotSaved(StoreError):
    """The disk refused: full (`disk_full`), read-only, or not ours."""

    def __init__(self, message: str, *, disk_full: bool = False) -> None:
        super().__init__(message)
        self.disk_full = disk_full


class Stuck(StoreError):
    """One file cannot be read, replaced or put into quarantine, so it is left as it is; the others can be saved."""


class Conflict(StoreError):
    """The entry's revision is not the expected one: another process got there first."""


class Missing(StoreError):
    """There is no entry with this id."""


class Unreadable(StoreError):
    """The file cannot be understood at all."""


class TooNew(StoreError):
    """The file's format is newer than this version of Hermes."""


class PayloadError(HermesError):
    """An agent's payload has another shape than its adapter knows."""


class AgentError(HermesError):
    """Something went wrong between Hermes and an agent."""

    permanent = False


class AgentAway(AgentError):
    """The agent cannot be reached just now."""


class AgentRefused(AgentError):
    """The agent was reached and said no, or said something of another shape."""

    permanent = True


class Unauthorized(AgentRefused):
    """The agent's server wants another user name or password."""


class NotThere(AgentRefused):
    """The agent does not know this request, session or message."""


class ChatError(HermesError):
    """Something went wrong between Hermes and Telegram."""

    permanent = False


class ChatAway(ChatError):
    """Telegram cannot be reached just now, or wants us to wait (`retry_after_s`, else None)."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Undelivered(ChatAway):
    """The request left, the answer never came: the message may be on the phone or not."""


class ChatRefused(ChatError):
    """Telegram was reached and said no.

    `reason` is its description in lower case; `blocked` is true where the person blocked the bot or the
    chat is gone; `moved_to` is the new id of a group that became a supergroup, else None.
    """

    permanent = True

    def __init__(self, reason: str, *, blocked: bool = False, moved_to: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason.lower()
        self.blocked = blocked
        self.moved_to = moved_to
