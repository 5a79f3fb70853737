"""The listener under the doctor's eyes."""

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.chat.poll import CONFLICT
from hermes.commands.doctor import listener
from hermes.commands.doctor.finding import Around
from hermes.hook import spool
from hermes.model.chat_memory import ChatMemory
from hermes.storage import process_lock
from tests.at_once import at_once
from tests.commands.doctor.patient import Patient, named, old, told
from tests.storage.store_process import an_entry

HOUR_S = 3600.0


def remember(patient: Patient, *, ago_s: float = 5, trouble: str = "") -> Around:
    """Let the listener have polled that long ago; return what the doctor looks at, at that very moment."""
    around = patient.around()
    now_s = around.now()
    bot_id = int(patient.token.partition(":")[0])
    at_once(patient.store.save_chat(ChatMemory(bot_id, last_poll_s=now_s - ago_s, trouble=trouble)))
    return replace(around, now=lambda: now_s)


async def test_one_that_hears_telegram_is_well(patient: Patient) -> None:
    """Its name and since when."""
    remember(patient)
    with patient.store.home.hold("hermes listen"):
        found = await listener.look(patient.around(ahead_s=60))
    assert told(found) == {"lock": "good", "poll": "good", "inbox": "good", "service": "good"}
    assert named(found, "lock").seen == f"hermes listen (pid {os.getpid()}) is at work, for 1 min"


async def test_nobody_is_well_where_the_plugin_starts_one(patient: Patient) -> None:
    """Without plugin nothing would."""
    found = named(await listener.look(patient.around()), "lock")
    assert (found.verdict, found.mend) == ("broken", f"hermes listen --config {patient.config_file}")
    patient.install()
    assert told(await listener.look(patient.around())) == {"lock": "good", "service": "good"}


async def test_nobody_is_broken_where_something_waits(patient: Patient) -> None:
    """A question that is open, or what lies in the inbox."""
    patient.install()
    spool.drop(patient.store.home.root, spool.record("opencode", {"type": "receipt"}))
    await patient.store.create(an_entry())
    found = named(await listener.look(patient.around()), "lock")
    assert (found.verdict, found.seen) == ("broken", "nobody listens, and 2 questions or answers wait")


async def test_a_damaged_store_is_not_this_checks_business(patient: Patient) -> None:
    """A file stands where the open questions belong."""
    patient.install()
    store = patient.store
    (store.home.root / "pending").rmdir()
    (store.home.root / "pending").write_text("")
    assert named(await listener.look(patient.around()), "lock").verdict == "good"


async def test_a_listener_of_another_store_with_our_bot_is_broken(patient: Patient) -> None:
    """None of ours could start."""
    with process_lock.hold_bot(int(patient.token.partition(":")[0]), "/elsewhere", "hermes listen, store /elsewhere"):
        found = named(await listener.look(patient.around()), "lock")
    assert found.verdict == "broken"
    assert f"hermes listen, store /elsewhere (pid {os.getpid()}) holds this bot" in found.seen


@pytest.mark.parametrize(
    ("memory", "verdict", "words"),
    [
        ({"ago_s": HOUR_S}, "broken", "Telegram was last reached 1 h 00 min ago"),
        ({"trouble": "the bot was blocked"}, "broken", "the bot was blocked"),
        ({"trouble": CONFLICT}, "good", "Telegram was reached 5 s ago"),
    ],
)
async def test_a_listener_that_hears_nothing_is_broken(
    patient: Patient, memory: dict[str, str], verdict: str, words: str
) -> None:
    """By its last good poll and its own words; another poller is told among Telegram's checks."""
    around = remember(patient, **memory)  # type: ignore[arg-type]
    with patient.store.home.hold("hermes listen"):
        found = named(await listener.look(around), "poll")
    assert (found.verdict, found.seen) == (verdict, words)


async def test_a_listener_that_never_polled_is_broken(patient: Patient) -> None:
    """There is no memory of it."""
    with patient.store.home.hold("hermes listen"):
        found = named(await listener.look(patient.around()), "poll")
    assert (found.verdict, found.seen) == ("broken", "Telegram was never reached")


@pytest.mark.parametrize("listens", [True, False])
async def test_a_locked_phone_is_a_warning(patient: Patient, *, listens: bool) -> None:
    """With the command that unlocks it, also if nobody listens: the next listener would take no answers."""
    remember(patient)
    await patient.store.lock_phone()
    with patient.store.home.hold("hermes listen") if listens else nullcontext():
        found = named(await listener.look(patient.around()), "phone")
    assert (found.verdict, found.mend) == ("warning", f"hermes unlock --config {patient.config_file}")


async def test_an_inbox_that_is_not_taken_in_is_broken(patient: Patient) -> None:
    """After a minute; what came just now is no jam."""
    remember(patient)
    spool.drop(patient.store.home.root, spool.record("opencode", {"type": "receipt"}))
    with patient.store.home.hold("hermes listen"):
        assert named(await listener.look(patient.around()), "inbox").verdict == "good"
        old(spool.listing(patient.store.home.root)[0], 90)
        found = named(await listener.look(patient.around()), "inbox")
    assert (found.verdict, found.seen) == ("broken", "1 of what agents asked is not taken in")


# --- the service ---------------------------------------------------------------------------------------


def systemctl(patient: Patient, active: str, enabled: str, linger: str = "yes") -> None:
    """Put a systemctl into the PATH that says this of a unit that is installed, and a loginctl."""
    patient.program("loginctl", f"echo Linger={linger}")
    unit = Path(patient.around().environ["HOME"]) / ".config" / "systemd" / "user" / "hermes.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text("")
    lines = f"ActiveState={active}\\nUnitFileState={enabled}\\n"
    patient.program("systemctl", f'[ "$1 $2" = "--user show" ] && printf "{lines}"')


@pytest.mark.parametrize(
    ("active", "enabled", "verdict", "mend"),
    [
        ("active", "enabled", "good", ""),
        ("activating", "enabled", "good", ""),
        ("active", "disabled", "warning", "hermes install service --config"),
        ("failed", "enabled", "broken", "hermes install service --config"),
        ("inactive", "enabled", "broken", "hermes install service --config"),
    ],
)
async def test_the_service_as_its_manager_tells_it(
    patient: Patient, active: str, enabled: str, verdict: str, mend: str
) -> None:
    """Active and enabled is well; else it is installed again, with this configuration."""
    systemctl(patient, active, enabled)
    found = named(await listener.look(patient.around()), "service")
    assert (found.verdict, found.mend) == (verdict, f"{mend} {patient.config_file}" if mend else "")


@pytest.mark.parametrize("active", ["active", "failed"])
async def test_the_service_of_another_configuration_is_none_of_this_one(patient: Patient, active: str) -> None:
    """It brings none of these questions to the phone; to install it again would take it from the other one."""
    systemctl(patient, active, "enabled")
    other = patient.root / "other.toml"
    unit = patient.home / ".config" / "systemd" / "user" / "hermes.service"
    unit.write_text(f"[Service]\nExecStart=/bin/hermes listen --config {other}\n")
    found = named(await listener.look(patient.around()), "service")
    assert (found.verdict, found.mend) == ("good", "")
    assert found.seen.startswith(f"none for this configuration: the one here uses {other}. A listener runs only if ")


async def test_a_service_that_ends_with_the_login_is_a_warning(patient: Patient) -> None:
    """It is no service that starts with the machine, unless systemd lingers."""
    systemctl(patient, "active", "enabled", linger="no")
    found = named(await listener.look(patient.around()), "service")
    assert (found.verdict, found.mend) == ("warning", "loginctl enable-linger")
    assert found.seen == "starts when you log in, and stops when you log out; active"
    systemctl(patient, "active", "enabled")
    assert named(await listener.look(patient.around()), "service").seen == "starts with the machine; active"


async def test_no_service_is_well(patient: Patient) -> None:
    """An agent that asks starts a listener; only notices need one that always runs."""
    patient.program("systemctl", 'printf "ActiveState=inactive\\n"')
    found = named(await listener.look(patient.around()), "service")
    without = "without one, you do not hear that a turn has ended"
    assert found.verdict == "good"
    assert found.seen == f"none. A listener runs only if you start one or an agent asks; {without}"
    patient.tables["notices"] = {"enabled": False}
    patient.write()
    assert without not in named(await listener.look(patient.around()), "service").seen


async def test_a_service_manager_that_fails_is_none(patient: Patient) -> None:
    """As in a container."""
    patient.program("systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    assert named(await listener.look(patient.around()), "service").verdict == "good"


async def test_time_that_is_not_known_is_not_told(patient: Patient) -> None:
    """A lock whose file does not say since when."""
    with patient.store.home.hold("hermes listen"):
        (patient.store.home.root / "locks" / "listener.lock").write_text("")
        assert named(await listener.look(patient.around()), "lock").seen == "another process is at work"


async def test_a_process_that_is_not_known_is_not_killed(patient: Patient) -> None:
    """`kill 0` would end whoever types it."""
    bot_id = int(patient.token.partition(":")[0])
    with process_lock.hold_bot(bot_id, "/elsewhere", "hermes listen"):
        process_lock.bot_lock(bot_id, "/elsewhere").write_text("")
        found = named(await listener.look(patient.around()), "lock")
    assert found.seen == "another process holds this bot, for another store"
    assert found.mend == "end it, or give one of the two a bot of its own"
