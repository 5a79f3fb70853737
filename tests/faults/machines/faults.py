"""What can go wrong with several machines. A fault is begun, and lifted by what its beginning returned."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from tests.faults.machines import database as databases
from tests.faults.machines.clone import cloned_disk
from tests.faults.machines.fleet import HOUR_S, NAMES
from tests.faults.world import PACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.faults.machines.fleet import Machine
    from tests.faults.machines.round import MachinesRound

    Lift = Callable[[], None]

BEYOND_S: Final = 14.0 / PACE
"""Longer than a lease lasts, on the wall."""
READ_AGAIN_S: Final = 75.0
"""Longer than it takes until all open asks are read again, on the wall."""
MARKS: Final = (b"entries ", b"records", b"notices ", b"machine:", b"hermes.chats", b"hermes.leases")
"""Words in the requests to the database at which a connection is cut."""


# --- the processes of the machines --------------------------------------------------------------------------------


def _phone(play: MachinesRound) -> Machine:
    """Return the phone side, or any machine while there is none."""
    return play.world.phone_side() or play.rng.choice(play.world.machines)


def _some(play: MachinesRound) -> Machine:
    return play.rng.choice(play.world.machines)


def _signalled(machine: Machine, number: signal.Signals) -> Lift:
    machine.signal_listeners(number)
    return machine.start


def _restart_phone(play: MachinesRound) -> Lift:
    """Killed and started at once, while everything goes on."""
    phone = _phone(play)
    phone.restart()
    return phone.start


def _freeze_phone(play: MachinesRound) -> Lift:
    phone = _phone(play)
    phone.signal_listeners(signal.SIGSTOP)
    return lambda: phone.signal_listeners(signal.SIGCONT)


def _freeze_beyond(play: MachinesRound, machine: Machine) -> None:
    """Another machine may take over meanwhile; then this one goes on in the middle of what it did."""
    machine.signal_listeners(signal.SIGSTOP)
    play.later(BEYOND_S + play.rng.uniform(0.0, 0.8), lambda: machine.signal_listeners(signal.SIGCONT))


def _kill_all(play: MachinesRound) -> Lift:
    play.world.signal_listeners(signal.SIGKILL)
    return play.world.start


# --- the database -------------------------------------------------------------------------------------------------


def _stop_database(play: MachinesRound) -> Lift:
    play.world.server.stop()
    return play.world.heal


def _kill_database(play: MachinesRound) -> Lift:
    """As after a crash: it has to recover."""
    play.world.server.kill()
    return play.world.heal


def _restart_database(play: MachinesRound) -> None:
    server = play.world.server
    play.rng.choice((server.stop, server.kill))()
    server.start()


def _full(play: MachinesRound) -> Lift:
    databases.fill_disk(play.world.database, is_full=True)
    return lambda: databases.fill_disk(play.world.database, is_full=False)


def _slow(play: MachinesRound) -> Lift:
    delay_s = play.rng.uniform(0.02, 0.25)
    for machine in play.world.machines:
        machine.line.proxy.delay_s = delay_s
    return lambda: _heal_lines(play.world.machines)


# --- the network --------------------------------------------------------------------------------------------------


def _cut_within(play: MachinesRound, *, is_done: bool) -> Lift:
    machine = play.rng.choice((_phone(play), _some(play)))
    machine.line.cut_within(play.rng.choice(MARKS), is_done=is_done, times=play.rng.randint(1, 3))
    return lambda: _heal_lines((machine,))


def _cut_all(play: MachinesRound) -> None:
    for machine in play.world.machines:
        machine.line.cut()


def _freeze_line(play: MachinesRound) -> Lift:
    machine = play.rng.choice((_phone(play), _some(play)))
    machine.line.proxy.is_frozen = True
    return lambda: _heal_lines((machine,))


def _lose_news(play: MachinesRound) -> Lift:
    """What is lost is read a minute later at last, and psycopg waits for that minute on the clock of the wall."""
    play.settling_s = READ_AGAIN_S * PACE
    lost = play.rng.sample(play.world.machines, play.rng.randint(1, len(NAMES)))
    for machine in lost:
        machine.line.proxy.loses_news = True
    return lambda: _heal_lines(tuple(lost))


def _heal_lines(machines: tuple[Machine, ...]) -> None:
    for machine in machines:
        machine.line.heal()


# --- who the machines are -----------------------------------------------------------------------------------------


def _jump(play: MachinesRound) -> None:
    _some(play).jump(play.rng.choice((-1, 1)) * play.rng.choice((60.0, HOUR_S, 9 * HOUR_S)))


def _rename(play: MachinesRound) -> None:
    machine = _some(play)
    machine.rename(f"{machine.label[:12]}-{play.rng.randrange(10**4)}")
    machine.restart()


def _one_name(play: MachinesRound) -> None:
    """Two machines have the same name for people."""
    machine, other = play.rng.sample(play.world.machines, 2)
    machine.rename(other.label)
    machine.restart()


def _lose_rights(play: MachinesRound) -> Lift:
    """Somebody takes the rights of the agent-only machine away, and gives them back."""
    ask = play.world.database.ask
    ask("REVOKE SELECT, INSERT, UPDATE ON hermes.leases, hermes.machines FROM ci")

    def lift() -> None:
        ask("GRANT SELECT, INSERT, UPDATE ON hermes.leases, hermes.machines TO ci")

    return lift


FAMILIES: Final[Mapping[str, Mapping[str, Callable[[MachinesRound], Lift | None]]]] = {
    "the machines' processes": {
        "phone side killed": lambda play: _signalled(_phone(play), signal.SIGKILL),
        "phone side killed, started": _restart_phone,
        "phone side ended": lambda play: _signalled(_phone(play), signal.SIGTERM),
        "phone side frozen": _freeze_phone,
        "phone side frozen beyond its lease": lambda play: _freeze_beyond(play, _phone(play)),
        "a machine killed": lambda play: _signalled(_some(play), signal.SIGKILL),
        "a machine frozen beyond its lease": lambda play: _freeze_beyond(play, _some(play)),
        "all listeners killed": _kill_all,
    },
    "the database": {
        "database stopped": _stop_database,
        "database killed": _kill_database,
        "database restarted": _restart_database,
        "database full": _full,
        "database slow": _slow,
    },
    "the network of the machines": {
        "cut before a statement": lambda play: _cut_within(play, is_done=False),
        "cut after a statement": lambda play: _cut_within(play, is_done=True),
        "all connections cut": _cut_all,
        "a machine's network frozen": _freeze_line,
        "NOTIFY lost": _lose_news,
    },
    "the machines themselves": {
        "a machine's clock jumps": _jump,
        "a machine renamed": _rename,
        "two machines with one name": _one_name,
        "a cloned disk": cloned_disk,
        "a role without its rights": _lose_rights,
    },
}
"""Every fault of several machines, by what it befalls."""
CATALOGUE: Final = {kind: begin for family in FAMILIES.values() for kind, begin in family.items()}
SERVERS_OWN: Final = frozenset(
    {"database stopped", "database killed", "database restarted", "database full", "a role without its rights"}
)
"""At most one of these is in a round: each needs a database that runs, to begin or to be lifted."""
ALONE: Final = frozenset({"a cloned disk"})
"""What these show is seen while they last, and other trouble may hide it."""
SURE: Final = frozenset({"a machine's clock jumps", "NOTIFY lost"})
"""After these, Telegram has confirmed every message that it took, and no other machine has taken over."""
