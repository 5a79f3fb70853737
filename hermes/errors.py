"""The errors of Hermes.

    HermesError
    ├── ConfigError            a setting is missing, unknown or wrong (exit status 2)
    ├── Held                   another process holds the bot or the store (exit status 3)
    ├── ServiceError           the machine's service manager is missing, refused, or could not start Hermes
    ├── StoreError             the store cannot be used or read; `permanent` is true if only a person can change that
    │   ├── StoreAway          the database cannot be reached or read now
    │   ├── NotSaved           nothing was saved: the disk is full or read-only, or the folder is not ours
    │   │   └── InUse          another process changes this one at the moment, or keeps it locked; others can be saved
    │   ├── NoRoom             the files that wait to be sent take all the room that they may take
    │   ├── Stuck              one file cannot be read, replaced or moved to quarantine; others can be saved
    │   ├── Conflict           another process changed the entry first
    │   ├── Deposed            another process has taken over what this one held; it wrote nothing
    │   ├── Missing            there is no such entry
    │   ├── Unreadable         the file is damaged; the store moves it to quarantine
    │   └── TooNew             a newer Hermes wrote the file; it was left untouched
    ├── NotHeard               the program that hears voice notes failed, or heard no words
    ├── PayloadError           the payload of an agent has an unknown shape
    ├── AgentError             `permanent` is true if another try cannot help
    │   ├── AgentAway          no connection, a time-out, 408, 429, 5xx: another try can help
    │   │   └── NotRunning     its server does not run now
    │   └── AgentRefused       any other 4xx, or an answer of another shape: another try cannot help
    │       ├── Unauthorized   401: the user name or the password is wrong
    │       ├── NotThere       404: no such request, session or message
    │       └── Unfit          the answer does not fit the request, which stays open (`said` says why)
    └── ChatError              `permanent` as above
        ├── ChatAway           no connection, a time-out, 5xx, 429 (`retry_after_s`), an answer of another shape
        │   └── Undelivered    the message may have arrived or not: the connection broke after the request was sent
        └── ChatRefused        400, 403 (`blocked`, `moved_to`), 409, and 401 or 404 for the token

The text of an error names the fault, its place and the remedy. It never contains a token or a password.
"""


class HermesError(Exception):
    """The root of all these errors."""


class ConfigError(HermesError):
    """A setting is missing, unknown or wrong. The message names the file, the key, the fault and a right value."""


class Held(HermesError):
    """Another process holds the lock that this one needs."""


class ServiceError(HermesError):
    """The machine's service manager is missing, refused, or could not start Hermes."""


class StoreError(HermesError):
    """The store could not do its task. No data in it was overwritten."""

    permanent = False


class StoreAway(StoreError):
    """The database cannot be reached or read now."""


class NotSaved(StoreError):
    """Nothing was saved. `disk_full` is true if the disk is full or the quota is used up."""

    def __init__(self, message: str, *, disk_full: bool = False) -> None:
        super().__init__(message)
        self.disk_full = disk_full


class InUse(NotSaved):
    """Another process changes this one at the moment, or keeps it locked. Others can be saved."""


class NotHeard(HermesError):
    """The program that hears voice notes failed, or heard no words. The message is for the person."""


class NoRoom(StoreError):
    """Nothing was saved: the files that wait to be sent take all the room that they may take."""


class Stuck(StoreError):
    """One file cannot be read, replaced or moved to quarantine, so it is left as it is. Other files can be saved."""


class Conflict(StoreError):
    """The entry has another revision than expected, or exists already: another process was first."""


class Deposed(StoreError):
    """Another process has taken over a lease of this one. Nothing was written."""


class Missing(StoreError):
    """There is no entry with this id."""


class Unreadable(StoreError):
    """The content of the file is damaged."""


class TooNew(StoreError):
    """The file has a format that is newer than this version of Hermes."""


class PayloadError(HermesError):
    """The payload of an agent has a shape that its adapter does not know."""


class AgentError(HermesError):
    """Something went wrong between Hermes and an agent."""

    permanent = False


class AgentAway(AgentError):
    """The agent cannot be reached now, or cannot answer yet."""


class NotRunning(AgentAway):
    """The agent's server does not run; it is started when somebody uses the agent."""


class AgentRefused(AgentError):
    """The agent was reached, and refused the request or answered in another shape.

    `tag` and `said` are the name and the words of the refusal, "" if the agent gave none. Only the name may be logged.
    """

    permanent = True

    def __init__(self, message: str, *, tag: str = "", said: str = "") -> None:
        super().__init__(message)
        self.tag = tag
        self.said = said


class Unauthorized(AgentRefused):
    """The agent's server does not accept the user name and password."""


class NotThere(AgentRefused):
    """The agent does not know this request, session or message."""


class Unfit(AgentRefused):
    """The agent does not take this answer, and still waits for one. `said` are its words."""


class ChatError(HermesError):
    """Something went wrong between Hermes and Telegram."""

    permanent = False


class ChatAway(ChatError):
    """Telegram cannot be reached now, or tells Hermes to wait (`retry_after_s`, else None)."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Undelivered(ChatAway):
    """The request was sent, but no usable answer came: the message may be on the phone or not."""


class ChatRefused(ChatError):
    """Telegram was reached, and refused the request.

    `reason` is the message in lower case. `blocked` is true if the person blocked the bot or the chat is gone.
    `moved_to` is the new id of a group that became a supergroup, else None.
    """

    permanent = True

    def __init__(self, reason: str, *, blocked: bool = False, moved_to: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason.lower()
        self.blocked = blocked
        self.moved_to = moved_to
