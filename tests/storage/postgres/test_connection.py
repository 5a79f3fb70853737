"""A database that is away, full, slow or frozen: a clear sentence within seconds, and nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
from pathlib import Path

import psycopg
import pytest

from hermes.errors import ConfigError, Conflict, NotSaved, StoreAway, StoreError
from hermes.storage.postgres import connection as connection_module
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.connection import Connection, UnknownError, connected, finished
from hermes.storage.postgres.sentences import sentence, told
from tests.harness.postgres import PASSWORD, Database, Server
from tests.harness.processes import free_port
from tests.storage.machines import joined, machine
from tests.storage.postgres.proxy import proxy
from tests.storage.store_process import an_entry, one_more

ADDRESS = Address("postgresql://hermes@127.0.0.1/hermes", "s3cret")


def _errors(kind: type[psycopg.Error] = psycopg.Error) -> list[type[psycopg.Error]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in _errors(sub))]


@pytest.mark.parametrize("writes", [True, False])
def test_each_error_of_psycopg_has_a_sentence(writes: bool) -> None:
    """None of them is left as it is, and none quotes anything."""
    for kind in {*_errors(), *(each for _, each in inspect.getmembers(psycopg.errors, inspect.isclass))}:
        if issubclass(kind, psycopg.Error):
            error = told(kind("row of Ann: s3cret"), ADDRESS, writes=writes)
            assert isinstance(error, Conflict | NotSaved if writes else StoreError)
            assert "s3cret" not in str(error)
            assert kind.sqlstate is None or "Ann" not in str(error)
            assert isinstance(error, Conflict) or str(error).partition(": ")[2 if writes else 0][:3] in (
                "the",
                "ano",
            )  # "the database …", "another process …"


def test_the_sentence_of_a_connection_that_was_not_made_says_why() -> None:
    """In the words of the client library."""
    error = psycopg.OperationalError('connection failed: FATAL:  no "s3cret"\n here')
    assert sentence(error, ADDRESS) == 'the database cannot be reached (FATAL: no "…" here)'
    assert "(x)" in sentence(psycopg.OperationalError("x"), Address("postgresql://a"))


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ('FATAL:  password authentication failed for user "ann"', "does not accept this user and password"),
        ("fe_sendauth: no password supplied", "the database wants a password from this user"),
        ("server does not support SSL, but SSL was required", "say so with tls or ca_file in [store]"),
        ("SSL error: certificate verify failed", "`hermes setup --store-ca-file FILE`"),
    ],
)
def test_the_sentence_names_the_remedy(words: str, wanted: str) -> None:
    """An error of such a connection has no code, only words."""
    assert wanted in sentence(psycopg.OperationalError(f"connection failed: {words}"), ADDRESS)


def test_a_server_that_does_not_run_is_one_sentence_with_a_remedy() -> None:
    """The client library asks a question, and repeats itself if the server has several addresses."""
    refused = 'connection to server at "127.0.0.1", port 1 failed: Connection refused'
    asks = "\n\tIs the server running on that host and accepting TCP/IP connections?"
    each = f"\nMultiple connection attempts failed. All failures were:\n- host: 'a': connection failed: {refused}{asks}"
    wanted = f"the database cannot be reached ({refused}); see that its server runs, and that its address is right"
    for more in (asks, f"{asks}{each}{each}"):
        assert sentence(psycopg.OperationalError(f"connection failed: {refused}{more}"), ADDRESS) == wanted


def test_a_password_is_not_shown() -> None:
    """Nor is an address that may have one in it."""
    assert "s3cret" not in repr(ADDRESS)
    with pytest.raises(ConfigError, match="is not a URL") as caught:
        Address("postgresql://ann:%zz-s3cret@db/hermes").parameters()
    assert "s3cret" not in str(caught.value)


async def test_a_full_disk_is_said_and_changes_nothing(database: Database, tmp_path: Path) -> None:
    """The words are those for people."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        entry = await store.create(an_entry())
        database.ask("""
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE UPDATE OR INSERT ON hermes.entries
            FOR EACH STATEMENT EXECUTE FUNCTION full_disk();
        """)
        for work in (store.change(entry.id, one_more), store.create(an_entry("bbbb2222"))):
            with pytest.raises(NotSaved, match="disk of the database is full") as caught:
                await work
            assert caught.value.disk_full
        assert await store.open() == [entry]


async def test_a_database_that_cannot_be_reached_is_said_at_once(tmp_path: Path) -> None:
    """Reading and writing."""
    store = machine(tmp_path, "desk", Address(f"postgresql://hermes@127.0.0.1:{free_port()}/x", PASSWORD))
    with pytest.raises(StoreError, match="cannot be reached"):
        await store.get("aaaa2222")
    connection = store._connection
    with pytest.raises(NotSaved, match="nothing was saved: the database cannot be reached"):
        await connection.write("SELECT 1")
    with pytest.raises(NotSaved):
        await connection.repeat("SELECT 1")


async def test_an_address_that_names_a_missing_file_is_a_database_that_is_away(tmp_path: Path) -> None:
    """The file was there at the start: what comes meanwhile is kept until it is there again."""
    store = machine(tmp_path, "desk", Address("postgresql://hermes@db/x", ca_file=tmp_path / "gone.pem"))
    why = f"needs the certificate authorities in {tmp_path}/gone.pem, which is not a file"
    with pytest.raises(StoreAway, match=f"^the address of the database {why}"):
        await store.get("aaaa2222")
    with pytest.raises(NotSaved, match=f"^nothing was saved: the address of the database {why}"):
        await store._connection.write("SELECT 1")


async def test_a_lease_is_renewed_before_the_writes_that_wait(database: Database) -> None:
    """However many there are."""
    connection = Connection(database.address())
    done: list[list[tuple[object, ...]]] = []

    async def write() -> None:
        done.append(await connection.write("SELECT pg_sleep(0.05)"))

    writes = [asyncio.create_task(write()) for _ in range(60)]
    await asyncio.sleep(0)
    await connection.repeat("SELECT 1")
    assert len(done) <= 2
    await asyncio.gather(*writes)
    await connection.close()


async def test_a_wrong_password_is_said_without_it(database: Database) -> None:
    """Nor is the right one there."""
    connection = Connection(database.address(password="wr0ng"))
    with pytest.raises(StoreError) as caught:
        await connection.read("SELECT 1")
    assert "wr0ng" not in str(caught.value)


async def test_a_database_that_is_restarted_loses_nothing(database: Database, postgres: Server, tmp_path: Path) -> None:
    """The next call makes another connection; a killed server is the same."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        entry = await store.create(an_entry())
        for end in (postgres.stop, postgres.kill):
            end()
            with pytest.raises(StoreError):
                await store.change(entry.id, one_more)
            postgres.start()
            entry = await store.change(entry.id, one_more, entry)
        assert entry.revision == 3
        assert await store.open() == [entry]
        await store.renew(())


@pytest.fixture
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "PATIENCE_S", 2.0)


@pytest.mark.usefixtures("_hurried")
async def test_a_frozen_database_keeps_nobody_waiting(database: Database, tmp_path: Path) -> None:
    """Neither the first who asks, nor those behind, nor a new connection."""
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port))
        async with joined(store):
            entry = await store.create(an_entry())
            between.is_frozen = True
            began = time.monotonic()
            works = [store.get(entry.id), store.change(entry.id, one_more, entry), store.get(entry.id)]
            results = await asyncio.gather(*works, return_exceptions=True)
            assert all(isinstance(each, StoreError) for each in results)
            with pytest.raises(StoreError, match="did not answer"):
                await store.get(entry.id)
            with pytest.raises(NotSaved, match="did not answer"):
                await store.settle(entry.id, entry)
            assert time.monotonic() - began < 10 * connection_module.PATIENCE_S
            between.is_frozen = False
            assert (await store.get(entry.id)).id == entry.id


@pytest.mark.usefixtures("_hurried")
async def test_a_long_line_that_moves_is_waited_for(database: Database) -> None:
    """The limit is for one statement, not for all that are before it."""
    connection = Connection(database.address())
    writes = [connection.write("SELECT pg_sleep(0.3)") for _ in range(12)]
    assert len(await asyncio.gather(*writes)) == 12
    await connection.close()


@pytest.mark.usefixtures("_hurried")
async def test_a_long_line_for_a_frozen_database_is_given_up_as_a_whole(database: Database) -> None:
    """Not one after the other."""
    async with proxy(database.port) as between:
        connection = Connection(database.address(port=between.port))
        await connection.read("SELECT 1")
        between.is_frozen = True
        began = time.monotonic()
        results = await asyncio.gather(*(connection.write("SELECT 1") for _ in range(30)), return_exceptions=True)
        assert time.monotonic() - began < 6 * connection_module.PATIENCE_S
        assert isinstance(results[0], UnknownError)
        assert all(isinstance(each, NotSaved) for each in results[1:])
        between.is_frozen = False
        assert await connection.write("SELECT 1") == [(1,)]
        await connection.close()


async def test_several_statements_that_take_too_long_are_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is done."""
    monkeypatch.setattr(connection_module, "_WHOLE_S", 0.3)
    connection = Connection(database.address())

    async def do() -> None:
        async with connection.transaction() as work:
            await work.execute("CREATE TABLE public.half_done ()")
            await work.execute("SELECT pg_sleep(3)")

    with pytest.raises(NotSaved, match="did not answer"):
        await do()
    assert await connection.read("SELECT to_regclass('public.half_done') IS NULL") == [(True,)]
    await connection.close()


@pytest.mark.usefixtures("_hurried")
async def test_a_new_connection_to_a_frozen_database_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the server has greeted."""
    async with proxy(database.port) as between:
        between.is_frozen = True
        for work in ("read", "write"):
            with pytest.raises(StoreError, match="did not answer"):
                await getattr(Connection(database.address(port=between.port)), work)("SELECT 1")
        between.is_frozen = False
        monkeypatch.setattr(connection_module, "PATIENCE_S", 60.0)  # a busy machine takes seconds to greet
        between.cut_before = b"synchronous_commit"
        with pytest.raises(StoreError, match="cannot be reached"):
            await Connection(database.address(port=between.port)).read("SELECT 1")


async def test_a_statement_that_nobody_waits_for_any_more_is_cut(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """A cancelled task does not wait for the database, and leaves no connection in the middle of something.

    Nor is there a traceback in the log: nobody wants the result.
    """
    connection = Connection(database.address())
    work = asyncio.create_task(connection.read("SELECT pg_sleep(3)"))
    await asyncio.sleep(0.3)
    work.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert time.monotonic() - began < 1
    assert await connection.read("SELECT 1") == [(1,)]
    await connection.close()
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_a_statement_that_fails_while_it_is_given_up_leaves_no_traceback(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Its task is cancelled at the very moment when the error comes."""
    connection = await connected(database.address())
    waiting = [asyncio.create_task(finished(connection, "SELECT no_such_column"))]
    rows: list[asyncio.Task[object]] = []
    while not rows:
        await asyncio.sleep(0)
        rows = [task for task in asyncio.all_tasks() if "_rows" in repr(task.get_coro())]
    rows[0].add_done_callback(lambda _: waiting[0].cancel())
    await asyncio.wait(waiting)
    assert waiting[0].cancelled()
    await connection.close()
    rows.clear()
    waiting.clear()
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(database: Database) -> None:
    """Its task is cancelled at the very moment when it is made. An open one would be reported when it is collected."""
    making = asyncio.create_task(connected(database.address()))
    settings: list[asyncio.Task[object]] = []
    while not settings:
        await asyncio.sleep(0)
        settings = [task for task in asyncio.all_tasks() if "_rows" in repr(task.get_coro())]
    settings[0].add_done_callback(lambda _: making.cancel())
    with pytest.raises(asyncio.CancelledError):
        await making
    gc.collect()


async def test_a_slow_statement_is_ended_by_the_server(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has changed nothing then, and the connection stays."""
    connection = Connection(database.address())
    await connection.read("SELECT set_config('statement_timeout', '100', false)")
    with pytest.raises(NotSaved, match="took too long"):
        await connection.write("SELECT pg_sleep(3)")
    [(setting,)] = await connection.read("SELECT current_setting('statement_timeout')")
    assert setting == "100ms"
    await connection.close()
    [row] = await connection.read("SELECT current_setting('synchronous_commit'), current_setting('statement_timeout')")
    assert row == ("on", "4s")
    await connection.close()
