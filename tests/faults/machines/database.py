"""The database of a round: its time runs at the pace of the world, it can be full, and it notes who wrote what.

Each write is noted when it is committed, with the holders of the leases of that moment. The process that wrote is known
by its connection, on which it also renews its leases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from tests.harness.postgres import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES: Final = ("machines", "leases", "entries", "records", "files", "chats")

_PACED: Final = """
ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO real_clock_timestamp;
CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT to_timestamp(
        {epoch_s} + (extract(epoch FROM pg_catalog.real_clock_timestamp())::float8 - {epoch_s}) * {pace}
    )
$$;
"""
"""All statements in this database get this clock: those of Hermes call no function of another schema."""

_NOTED: Final = """
CREATE SCHEMA audit;
CREATE TABLE audit.disk (is_full boolean NOT NULL);
INSERT INTO audit.disk VALUES (false);
CREATE TABLE audit.holders (
    pid integer, since timestamptz, holder text, machine text, UNIQUE (pid, since, holder)
);
CREATE TABLE audit.writes (
    pid integer, since timestamptz, what text, machine text, is_phones boolean, holders text[], phone text
);
CREATE FUNCTION audit.note_holder() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.holders VALUES (pg_backend_pid(), pg_postmaster_start_time(), NEW.holder, NEW.machine)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON hermes.leases
FOR EACH ROW WHEN (NEW.holder <> '') EXECUTE FUNCTION audit.note_holder();

CREATE FUNCTION audit.phones(phone json, phase text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(key || value::text, ',' ORDER BY key) FROM json_each(phone)
    WHERE key <> 'heard' OR phase <> 'settled'
$$;
CREATE FUNCTION audit.note_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    it jsonb := to_jsonb(NEW) - 'body' - 'phone' - 'data';
    is_phones boolean := TG_TABLE_NAME IN ('chats', 'files');
BEGIN
    IF TG_TABLE_NAME = 'entries' AND TG_OP = 'UPDATE' THEN
        -- An agent side that settles an ask ends the wait for a text too.
        is_phones := audit.phones(NEW.phone, NEW.phase) IS DISTINCT FROM audit.phones(OLD.phone, NEW.phase);
    END IF;
    INSERT INTO audit.writes
    SELECT pg_backend_pid(), pg_postmaster_start_time(),
           TG_OP || ' ' || TG_TABLE_NAME || ' ' || coalesce(it->>'id', ''),
           it->>'machine',
           is_phones,
           (SELECT array_agg(holder) FROM hermes.leases WHERE bot = NEW.bot AND name <> 'phone'),
           (SELECT holder FROM hermes.leases WHERE bot = NEW.bot AND name = 'phone');
    RETURN NULL;
END $$;

CREATE FUNCTION audit.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF (SELECT is_full FROM audit.disk) THEN
        RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100';
    END IF;
    RETURN NULL;
END $$;
"""
_NOTE_ALL: Final = """
CREATE CONSTRAINT TRIGGER note_at_commit AFTER INSERT OR UPDATE ON hermes.{table}
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit.note_write();
"""
_REFUSE: Final = """
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON hermes.{table}
FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse();
"""
_DEPOSED: Final = """
SELECT writes.what, holders.machine, writes.machine, writes.is_phones
FROM audit.writes JOIN audit.holders USING (pid, since)
WHERE NOT holders.holder = ANY(writes.holders)
    OR (writes.is_phones OR writes.machine <> holders.machine) AND holders.holder IS DISTINCT FROM writes.phone
"""
_PHONE: Final = "SELECT machine FROM hermes.leases WHERE name = 'phone' AND holder <> '' AND until > clock_timestamp()"


def pace_time(database: Database, epoch_s: float, pace: float) -> None:
    """Let the time of the database run at this pace since `epoch_s` (epoch)."""
    database.ask(_PACED.format(epoch_s=epoch_s, pace=pace))


def watch(database: Database) -> None:
    """Note all writes from now on, once the tables of Hermes are there."""
    noted = "".join(_NOTE_ALL.format(table=table) for table in ("entries", "records", "files", "chats"))
    database.ask(_NOTED + noted + "".join(_REFUSE.format(table=table) for table in TABLES))


def fill_disk(database: Database, *, is_full: bool) -> None:
    """Let the database refuse all writes of Hermes, or take them again."""
    database.ask("UPDATE audit.disk SET is_full = %s", is_full)


def written_by_deposed(database: Database) -> Iterator[str]:
    """No process writes without its leases: not as a machine, and not as the phone side; forget what was noted."""
    for what, machine, of, is_phones in database.ask(_DEPOSED):
        side = "for the phone side" if is_phones or of != machine else "for its agents"
        yield f"machine {machine} did “{what}” {side} without the lease (the row is of machine {of})"
    database.ask("DELETE FROM audit.writes")


def notes(database: Database) -> int:
    """Return how many writes are noted whose writer is known."""
    [(count,)] = database.ask("SELECT count(*) FROM audit.writes JOIN audit.holders USING (pid, since)")
    assert isinstance(count, int)
    return count


def phone_machine(database: Database) -> str:
    """Return the id of the machine that is the phone side now, "" if there is none or the database is away."""
    try:
        rows = database.ask(_PHONE)
    except psycopg.OperationalError:
        return ""
    return str(rows[0][0]) if rows else ""


def open_entries(database: Database) -> list[str]:
    """Return the ids of the open asks."""
    try:
        return [str(entry_id) for (entry_id,) in database.ask("SELECT id FROM hermes.entries WHERE closed_s IS NULL")]
    except psycopg.OperationalError as error:
        return [f"a database that is away: {error}"]
