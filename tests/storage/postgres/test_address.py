"""What libpq is told, and what it does with it: nothing else may decide where the questions go."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import certifi
import psycopg
import pytest
from hypothesis import given, strategies as st
from psycopg import pq

from hermes.errors import ConfigError
from hermes.storage.postgres.address import Address
from tests.harness.postgres import PASSWORD, ProvenServer

SECRET = "hush-hush-hush"
FAR = "postgresql://ann@db.example:5433/hermes"


def refused(address: Address) -> str:
    """The end of the sentence with which this address is refused."""
    with pytest.raises(ConfigError) as caught:
        address.check()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def test_libpq_is_told_all_that_matters() -> None:
    """Where, who, how protected, and how soon a dead connection is seen."""
    told = Address(FAR, SECRET, home=Path("/home/ann")).parameters()
    wanted = {
        "host": "db.example",
        "hostaddr": "",
        "port": "5433",
        "dbname": "hermes",
        "user": "ann",
        "password": SECRET,
        "passfile": "/home/ann/.pgpass",
        "sslmode": "verify-full",
        "sslrootcert": certifi.where(),
        "gssencmode": "disable",
        "connect_timeout": "5",
        "keepalives": "1",
        "application_name": "hermes",
        "target_session_attrs": "read-write",
        "client_encoding": "UTF8",
    }
    assert told | wanted == told
    assert "service" not in told


def test_the_url_changes_some_of_it_and_not_the_rest() -> None:
    """Time limits and options, but not what Hermes relies on."""
    may, may_not = "connect_timeout=9&options=-cwork_mem%3D8MB", "application_name=x&target_session_attrs=any"
    told = Address(f"{FAR}?{may}&{may_not}&gssencmode=prefer").parameters()
    assert (told["connect_timeout"], told["options"]) == ("9", "-cwork_mem=8MB")
    assert (told["application_name"], told["target_session_attrs"], told["gssencmode"]) == (
        "hermes",
        "read-write",
        "disable",
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (FAR, "hermes on db.example"),
        ("postgres://ann@a,b/hermes", "hermes on a,b"),
        ("postgresql://ann@/hermes", "hermes on this machine"),
    ],
)
def test_the_name_says_which_database(url: str, name: str) -> None:
    """For sentences; the password is in no `repr`."""
    assert Address(url, SECRET).name == name
    assert SECRET not in repr(Address(url, SECRET))


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "is not the URL of a PostgreSQL database"),
        ("host=db.example user=ann", "is not the URL of a PostgreSQL database"),
        ("postgresql://ann@db.example/hermes?nonsense=1", "is not a URL that PostgreSQL understands"),
        ("postgresql://ann@db.example/her%00mes", "is not a URL that PostgreSQL understands"),
        ("postgresql://db.example/hermes", "does not name a user"),
        ("postgresql://ann@db.example", "does not name a database"),
        (f"postgresql://ann:{SECRET}@db.example/hermes", "has a password in it, which others could see"),
        (f"{FAR}?password={SECRET}", "has a password in it, which others could see: write it into password_file"),
        (f"{FAR}?sslpassword={SECRET}", "has a password in it"),
        (f"{FAR}?scram_client_key={SECRET}", "has a password in it"),
        (f"{FAR}?{SECRET}={SECRET}", "is not a URL that PostgreSQL understands"),
        (f"{FAR}?sslmode=require", "has sslmode=require, with which any machine could pose as the database: write ssl"),
        (f"{FAR}?sslmode=verify-ca", "has sslmode=verify-ca, with which any machine could pose"),
        (f"{FAR}?ssl=true", "has sslmode=require"),
        (f"{FAR}?sslmode=disable", "has sslmode=disable"),
        (f"{FAR}?sslrootcert=system", "has sslrootcert=system, which depends on the environment: name a file"),
        (f"{FAR}?sslrootcert=/nowhere", "needs the certificate authorities in /nowhere, which is not a file"),
    ],
)
def test_a_url_that_does_not_serve_is_refused(url: str, sentence: str) -> None:
    """Never with its password."""
    said = refused(Address(url))
    assert said.startswith(sentence)
    assert SECRET not in said


@pytest.mark.parametrize(
    ("hosts", "is_local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9,[::1],", True),
        ("%2Frun%2Fpostgresql", True),
        ("", True),
        ("localhost.example", False),
        ("127.0.0.1,db.example", False),
        ("127.1", False),
        ("10.0.0.1", False),
        ("192.168.1.1", False),
    ],
)
def test_what_stays_on_this_machine_needs_no_proof(hosts: str, *, is_local: bool) -> None:
    """A socket and the loopback, if every host is one."""
    url = f"postgresql://ann@{hosts}/hermes"
    assert Address(url).parameters()["sslmode"] == ("prefer" if is_local else "verify-full")
    assert Address(url).parameters()["sslrootcert"] == ("" if is_local else certifi.where())
    assert Address(f"{url}?hostaddr=10.0.0.1").parameters()["sslmode"] == "verify-full"


def test_the_proof_is_switched_off_by_name_alone() -> None:
    """The URL then says how far; without a word, libpq takes TLS if there is any."""
    assert Address(FAR, tls="off").parameters()["sslmode"] == "prefer"
    assert Address(f"{FAR}?sslmode=require", tls="off").parameters()["sslmode"] == "require"
    assert Address(f"{FAR}?sslmode=verify-full", tls="off").parameters()["sslrootcert"] == certifi.where()


def test_the_authorities_are_those_of_the_key_then_of_the_url_then_certifis(tmp_path: Path) -> None:
    """A private authority is named by a file."""
    one, two = tmp_path / "one.pem", tmp_path / "two.pem"
    one.touch()
    two.touch()
    of_url = Address(f"{FAR}?sslrootcert={two}")
    assert of_url.parameters()["sslrootcert"] == str(two)
    assert replace(of_url, ca_file=one).parameters()["sslrootcert"] == str(one)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "names a service, and {file} cannot be read (No such file or directory)"),
        ("[other]\nuser=ann\n", "names a service that {file} does not have"),
        (f"password={SECRET}\n", "names a service, and {file} is not a service file"),
        (f"[hermes]\nhost=a\nhost={SECRET}\n", "names a service, and {file} is not a service file"),
        (f"[hermes]\nhots={SECRET}\n", "names a service that has an unknown keyword in {file}: hots"),
        (f"[hermes]\nservice={SECRET}\n", "names a service that has an unknown keyword in {file}: service"),
        ("[hermes]\nhost=db.example\n", "does not name a user"),
        ("[hermes]\nhost=db.example\nuser=a\ndbname=b\nsslmode=require\n", "has sslmode=require"),
    ],
)
def test_a_service_that_does_not_serve_is_refused(text: str | None, sentence: str, tmp_path: Path) -> None:
    """Its host needs the same proof as one in the URL."""
    file = tmp_path / ".pg_service.conf"
    if text is not None:
        file.write_text(text)
    said = refused(Address("postgresql:///?service=hermes", home=tmp_path))
    assert said.startswith(sentence.format(file=file))
    assert SECRET not in said


def test_a_service_may_hold_the_password_and_the_url_wins(tmp_path: Path) -> None:
    """A file of secrets, unlike the URL; `%` and blanks are kept."""
    file = tmp_path / ".pg_service.conf"
    file.write_text("# ours\n[hermes]\nhost=db.example\nuser=ann\ndbname = hermes\npassword=a%b c\n")
    told = Address("postgresql://ben@/?service=hermes", home=tmp_path).parameters()
    assert (told["host"], told["user"], told["dbname"], told["password"]) == ("db.example", "ben", "hermes", "a%b c")
    assert Address("postgresql:///?service=hermes", SECRET, home=tmp_path).parameters()["password"] == SECRET


def test_the_files_with_secrets_are_those_that_are_there(tmp_path: Path) -> None:
    """A service file without a password may be read by others."""
    service, passwords = tmp_path / ".pg_service.conf", tmp_path / ".pgpass"
    service.write_text("[one]\nuser=ann\ndbname=hermes\n[two]\nuser=ann\ndbname=hermes\npassword=hush\n")
    one, two = (Address(f"postgresql:///?service={name}", home=tmp_path) for name in ("one", "two"))
    assert (one.secret_files(), two.secret_files()) == ((), (service,))
    passwords.touch()
    assert (one.secret_files(), two.secret_files()) == ((passwords,), (passwords, service))


@given(st.text())
def test_no_text_makes_it_stumble(text: str) -> None:
    """It is an address or a sentence."""
    for url in (text, f"postgresql://{text}", f"{FAR}?{text}"):
        with contextlib.suppress(ConfigError):
            Address(url, home=Path("/nowhere")).check()


def test_the_command_line_forgets_the_variables_of_libpq(tmp_path: Path) -> None:
    """Before it does anything."""
    program = "import atexit, os; from hermes.__main__ import main; "
    program += "atexit.register(lambda: print([name for name in os.environ if name.startswith('PG')])); main()"
    environ = os.environ | {"PGSERVICE": "x", "PGHOST": "evil.invalid", "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, "config"], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# --- with a server ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(postgres_programs: Path) -> Iterator[ProvenServer]:
    """A real server."""
    with ProvenServer() as started:
        yield started


class Login(NamedTuple):
    """What the server says about a connection."""

    user: str
    database: str
    port: int | None
    application: str
    work_mem: str
    tls: bool


def login(parameters: dict[str, str]) -> Login:
    """Connect with this libpq."""
    with psycopg.connect(**parameters) as connection:  # type: ignore[arg-type]
        row = connection.execute(
            "SELECT current_user, current_database(), inet_server_port(), current_setting('application_name'), "
            "current_setting('work_mem'), (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid())"
        ).fetchone()
    assert row is not None
    return Login(*row)


def proved(server: ProvenServer, **more: object) -> Address:
    """The address of the server, which must prove who it is."""
    url = f"postgresql://hermes@localhost:{server.port}/postgres?sslmode=verify-full"
    return Address(url, **{"password": PASSWORD, "ca_file": server.ca, "home": server.folder} | more)  # type: ignore[arg-type]


def test_it_connects_by_tls_and_by_the_socket(server: ProvenServer) -> None:
    """With all the keywords that libpq knows."""
    right = Login("hermes", "postgres", server.port, "hermes", "4MB", tls=True)
    assert login(proved(server).parameters()) == right
    socket = f"postgresql://hermes@/postgres?host={server.folder}&port={server.port}"
    assert login(Address(socket, PASSWORD).parameters()) == right._replace(port=None, tls=False)


def test_an_authority_that_others_trust_does_not_count(server: ProvenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the environment count only with sslrootcert=system, which is therefore refused."""
    monkeypatch.setenv("SSL_CERT_FILE", str(server.ca))
    told = proved(server, ca_file=None).parameters()
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        login(told)
    assert login(told | {"sslrootcert": "system"}).tls


EVIL = {
    "PGHOST": "evil.invalid",
    "PGHOSTADDR": "192.0.2.1",
    "PGPORT": "1",
    "PGDATABASE": "evil",
    "PGUSER": "evil",
    "PGPASSWORD": "evil",
    "PGPASSFILE": "/nowhere",
    "PGOPTIONS": "-cwork_mem=77MB",
    "PGAPPNAME": "evil",
    "PGSSLMODE": "disable",
    "PGSSLROOTCERT": "/nowhere",
    "PGSSLCERT": "/nowhere",
    "PGSSLKEY": "/nowhere",
    "PGSSLCRL": "/nowhere",
    "PGSSLNEGOTIATION": "direct",
    "PGGSSENCMODE": "require",
    "PGCHANNELBINDING": "disable",
    "PGREQUIREPEER": "evil",
    "PGCONNECT_TIMEOUT": "1",
    "PGCLIENTENCODING": "LATIN1",
    "PGTARGETSESSIONATTRS": "standby",
    "PGLOADBALANCEHOSTS": "random",
    "PGSSLMAXPROTOCOLVERSION": "TLSv1",
}


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Set the variables, where libpq sees them."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_the_environment_changes_nothing(server: ProvenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where, not who, not how protected; libpq by itself would listen to it."""
    right = login(proved(server).parameters())
    set_all(monkeypatch, EVIL)
    assert login(proved(server).parameters()) == right
    socket = Address(f"postgresql://hermes@/postgres?host={server.folder}&port={server.port}", PASSWORD)
    assert login(socket.parameters()) == right._replace(port=None, tls=False)


def test_a_service_of_the_environment_changes_nothing(server: ProvenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in place of the one of the home, nor beside the keywords; at most nothing connects."""
    evil, keys = server.folder / "evil.conf", server.folder / "keys"
    evil.write_text(
        f"[hermes]\nhost=evil.invalid\nsslmode=disable\nsslkeylogfile={keys}\nkeepalives=0\noptions=-cwork_mem=77MB\n"
    )
    (server.folder / ".pg_service.conf").write_text(f"[hermes]\nhost=localhost\nport={server.port}\nuser=hermes\n")
    set_all(monkeypatch, {"PGSERVICEFILE": str(evil), "PGSYSCONFDIR": str(server.folder), "PGSERVICE": "hermes"})
    url = "postgresql:///postgres?service=hermes&sslmode=verify-full"
    right = Login("hermes", "postgres", server.port, "hermes", "4MB", tls=True)
    assert login(replace(proved(server), url=url).parameters()) == right
    assert not keys.exists()
    monkeypatch.setenv("PGSERVICE", "of-nobody")
    with pytest.raises(psycopg.OperationalError, match='definition of service "of-nobody" not found'):
        login(replace(proved(server), url=url).parameters())


def test_every_variable_of_this_libpq_is_harmless(server: ProvenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a newer one: each leaves the connection as it is, or breaks it."""
    right, breaking = login(proved(server).parameters()), set()
    for option in pq.Conninfo.get_defaults():
        if option.envvar is None:
            continue
        with monkeypatch.context() as patch:
            patch.setenv(option.envvar.decode(), "zz")
            try:
                assert login(proved(server).parameters()) == right
            except psycopg.Error:
                breaking.add(option.keyword.decode())
    assert breaking <= {"service", "require_auth", "min_protocol_version", "max_protocol_version"}


def test_a_password_file_of_libpq_is_read_in_the_home_or_where_the_url_says(
    server: ProvenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nowhere else, so that a terminal and a hook find the same."""
    file = tmp_path / ".pgpass"
    file.write_text(f"localhost:{server.port}:*:hermes:{PASSWORD}\n")
    file.chmod(0o600)
    at_home = proved(server, password="", home=tmp_path)
    assert login(at_home.parameters()).user == "hermes"
    named = replace(at_home, url=f"{at_home.url}&passfile={file}", home=tmp_path / "none")
    assert login(named.parameters()).user == "hermes"
    monkeypatch.setenv("PGPASSFILE", str(file))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        login(replace(at_home, home=tmp_path / "none").parameters())
    assert at_home.secret_files() == named.secret_files() == (file,)
