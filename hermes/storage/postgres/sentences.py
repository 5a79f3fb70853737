"""The errors of psycopg become errors of Hermes, each with a sentence for people.

A sentence names the fault and the remedy. It quotes nothing but the words of the client library about a connection
that could not be made, without the password.
"""

from __future__ import annotations

import re
from typing import Final

import psycopg

from hermes.errors import Conflict, InUse, NotSaved, StoreAway, StoreError
from hermes.storage.postgres.address import Address

_DISK_FULL: Final = "53100"
_UNIQUE: Final = "23505"
_LOCKED: Final = "55P03"

_SENTENCES: Final = {
    _DISK_FULL: "the disk of the database is full; free some space there, then try again",
    "53200": "the database has not enough memory; give its server more",
    "53300": "the database takes no more connections; raise its max_connections, or close others",
    "42710": "the database has a user of this name already; choose another name",
    "57014": "the database took too long; look at its load",
    "57P03": "the database starts or stops at this moment; Hermes tries again",
    _LOCKED: "another process holds a lock in the database; Hermes tries again",
    "25006": "the database is read-only; use the address of the primary server",
    "3D000": "there is no database of this name; make it with `createdb`",
    "42501": "the database does not let this user do that; use the user that Hermes made for this machine",
    "42P01": "the tables of Hermes are missing; start Hermes on the machine with the bot's token first",
    "3F000": "the tables of Hermes are missing; start Hermes on the machine with the bot's token first",
}
_BARE_LOGIN: Final = "the database wants a password from this user, and there is none"
_PROOF: Final = (
    "; if it has no TLS, or a certificate of its own, say so with tls or ca_file in [store] "
    "(`hermes setup --store-tls off`, `hermes setup --store-ca-file FILE`)"
)
_NOT_RUNNING: Final = "; see that its server runs, and that its address is right"
_QUESTION: Final = "Is the server running"
_MORE: Final = re.compile(rf" {_QUESTION}[^?]*\?| Multiple connection attempts failed\..*")
"""More sentences of the client library: a question for people, and the failure of each address of the server."""
_OF_CLASSES: Final = {
    "08": "the connection to the database broke; Hermes tries again",
    "28": "the database does not accept this user and password",
    "40": "the database could not do that beside other changes; Hermes tries again",
    "53": "the database is short of resources; look at its log",
    "57": "the database was stopped; Hermes tries again",
    "58": "the disk of the database reports an error; look at its log",
    "XX": "the database is damaged; look at its log",
}


_PERMANENT: Final = frozenset({_OF_CLASSES["28"], _BARE_LOGIN})


def sentence(error: psycopg.Error, address: Address) -> str:
    """Return the sentence about this error."""
    state = error.sqlstate
    if state is not None:
        usual = f"the database reports the error {state} ({type(error).__name__}); look at its log"
        return _SENTENCES.get(state) or _OF_CLASSES.get(state[:2], usual)
    if isinstance(error, psycopg.OperationalError):
        return _not_connected(_quoted(error, address))
    return f"the database cannot be used ({type(error).__name__}); this is a defect of Hermes"


def told(error: psycopg.Error, address: Address, *, writes: bool) -> StoreError:
    """Return the error of Hermes for an error of the database, which has changed nothing."""
    words = sentence(error, address)
    found: StoreError
    if error.sqlstate == _UNIQUE:
        found = Conflict("the database has such a row already: another process was first")
    elif writes and error.sqlstate == _LOCKED:
        found = InUse(f"nothing was saved: {words}")
    elif writes:
        found = NotSaved(f"nothing was saved: {words}", disk_full=error.sqlstate == _DISK_FULL)
    else:
        found = StoreAway(words)
    found.permanent = words in _PERMANENT
    return found


def _not_connected(words: str) -> str:
    """Return the sentence about a connection that could not be made. Such an error has no code: only words."""
    if "password authentication failed" in words:
        return _OF_CLASSES["28"]
    if "no password supplied" in words:
        return _BARE_LOGIN
    remedy = _NOT_RUNNING if _QUESTION in words else ""
    if "SSL" in words or "certificate" in words:
        remedy = _PROOF
    return f"the database cannot be reached ({_MORE.sub('', words)}){remedy}"


def _quoted(error: psycopg.Error, address: Address) -> str:
    words = " ".join(str(error).split()).removeprefix("connection failed: ")
    return words.replace(address.password, "…") if address.password else words
