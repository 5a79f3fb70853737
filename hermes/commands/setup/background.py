"""What runs in the background: the service, and a listener that the setup may have to stop and start again."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from hermes import disk
from hermes.commands.install import is_any_connected
from hermes.commands.service import install_service, restart_service, service_state
from hermes.commands.service.machine import Machine, ServiceState
from hermes.commands.setup.context import Context
from hermes.commands.setup.file import without_asked
from hermes.commands.stores import home_of
from hermes.errors import Held, ServiceError
from hermes.storage import process_lock
from hermes.storage.process_lock import Holder, Holding

WHO = "hermes setup"
_READY = "A service keeps Hermes ready. Without one, your agents start it themselves when they ask something."


@dataclass(frozen=True, slots=True)
class Need:
    """Why a listener must always run, in a sentence, and what waits while none runs, as in "prompts wait"."""

    why: str
    waits: str


_PROMPTS = Need(
    "Prompts need a listener that always runs, because what you write comes when no agent asks anything.",
    "prompts wait",
)
_MACHINES = Need(
    "Your other machines need a listener that always runs here: it brings their questions to the phone.",
    "the questions of other machines wait",
)


def listener_need(*, has_prompts: bool, brings_others: bool) -> Need | None:
    """Return why a listener must always run here, None if agents may start one when they ask something.

    `brings_others`: this machine brings the questions of other machines to the phone.
    """
    return _MACHINES if brings_others else _PROMPTS if has_prompts else None


class Background:
    """The service and the listener of the configuration.

    A listener that `stop` or `alone` stopped is started again by `back`, in the same way.
    """

    def __init__(self, context: Context) -> None:
        settings, own = context.draft.settings, context.draft.config and context.draft.config.phone
        self._terminal, self._given, self._place = context.terminal, context.given, context.draft.place
        # If the store is a database, its listener does not hold the lock of the bot.
        self._shared_bot = own.bot_id if own and settings.store.address else None
        self._store, self._log = home_of(settings), settings.log.file
        self._environ = without_asked(context.environ)  # the file holds what these variables said
        self._machine = Machine(self._environ)
        self._revive: Callable[[], str] | None = None
        self._stopped: Holder | None = None

    def will_listen(self) -> bool:
        """Tell whether a listener runs, or is started without the person. Raises StoreError."""
        if self._revive is not None or self._store.listener() is not None:
            return True
        state = self._state()
        return (state.is_of(self._place) and state.enabled) or is_any_connected(self._environ)

    def always_listens(self) -> bool:
        """Tell whether our service is enabled, or a listener runs, or is started again, that does not leave by itself.

        Raises StoreError.
        """
        state, holder = self._state(), self._stopped or self._store.listener()
        return (state.is_of(self._place) and state.enabled) or (holder is not None and not holder.leaves_when_idle)

    def other_listener(self, bot_id: int) -> Holder | None:
        """Return the listener of another store that holds the lock of this bot: while it runs, none listens here.

        Raises StoreError.
        """
        with disk.reading(self._store.root):
            holder = process_lock.holder(process_lock.bot_lock(bot_id, self._store.root))
        return None if holder is None or process_lock.works_with(holder.who, self._store.root) else holder

    def has_services(self) -> bool:
        """Tell whether this machine can run a service. Raises ServiceError."""
        return self._state().kind != "none"

    # --- the service ----------------------------------------------------------------------------------------

    def choose_service(self, need: Need | None) -> bool:
        """Take the option, or offer the service if it can run and is not installed. Raises ConfigError: no person.

        `need`: why a listener must always run here, if it must.
        """
        if self._given.service is not None:
            return self._given.service
        terminal, state = self._terminal, self._state()
        terminal.title("In the background")
        if state.kind == "none":
            terminal.say(
                f"No service here: {state.detail}. Your agents start Hermes themselves when they ask something."
            )
            if need is not None:
                terminal.warn(f"{need.why} Let `hermes listen` run all the time; until it runs, {need.waits}.")
            return False
        if state.installed:
            say, but = (terminal.done, "") if _is_up(state) else (terminal.warn, ", but does not run")
            say(f"The service is installed{but} ({state.detail}).")
            if not state.is_of(self._place):
                terminal.warn(f"It uses {state.configuration}, not {self._place}, and stays as it is.")
            return False
        terminal.say(_READY if need is None else f"{need.why} The service is one; without it, {need.waits}.")
        return terminal.ask("Install the service?", default=True, option="--service or --no-service")

    def start_service(self) -> Iterator[str]:
        """Install and start the service, in place of a stopped listener; yield sentences as `install_service`."""
        yield from install_service(python=sys.executable, config_path=self._place, log=self._log, machine=self._machine)
        self._revive = None

    def wake_service(self) -> list[str]:
        """Start our enabled service if it is down; return a sentence, if so. Raises ServiceError."""
        state = self._state()
        if not state.is_of(self._place) or not state.enabled or _is_up(state):
            return []
        return [f"The service did not run and was started: {self._restarted()}"]

    def _state(self) -> ServiceState:
        return service_state(machine=self._machine)

    def _restarted(self) -> str:
        return restart_service(log=self._log, machine=self._machine)

    # --- the listener ---------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop the listener of the store, if there is one. Raises ServiceError, StoreError and Held."""
        holder = self._store.listener()
        if holder is not None:
            self._stopped = holder
            self._revive = self._reviver(holder) if holder.pid else None  # without its id it cannot be stopped
            self._store.stop_listener()

    def back(self) -> list[str]:
        """Start the stopped listener again, if any; return the sentences about it. Raises ServiceError."""
        revive, self._revive = self._revive, None
        return [] if revive is None else [revive()]

    @contextmanager
    def alone(self, bot_id: int) -> Iterator[None]:
        """Hold the lock of the bot, and of a shared store, so that no listener of this machine takes the updates.

        Raises:
            Held: another process holds it and does not stop, or the person does not want it to stop.
            StoreError: the lock cannot be made.
        """
        home, lock = self._store, partial(process_lock.bot_lock, bot_id, self._store.root)
        with ExitStack() as held:
            if bot_id == self._shared_bot:
                take = partial(home.hold, WHO)
                held.enter_context(self._taken(take, home.listener, home.stop_listener))
            take = partial(process_lock.hold_bot, bot_id, home.root, WHO)
            look, stop = (lambda: process_lock.holder(lock())), (lambda: process_lock.stop(lock()))
            held.enter_context(self._taken(take, look, stop))
            yield

    def _taken(
        self, take: Callable[[], Holding], look: Callable[[], Holder | None], stop: Callable[[], Holder | None]
    ) -> Holding:
        """Take a lock. If a listener holds it, as `look` tells, stop it if the person agrees. Raises Held."""
        try:
            return take()
        except Held:
            self._pause(look(), stop)
            return take()

    def _pause(self, holder: Holder | None, stop: Callable[[], Holder | None]) -> None:
        """Stop the listener that holds a lock, if the person agrees. Raises Held."""
        if holder is None or not holder.pid or holder.who.startswith(WHO):
            return
        self._terminal.say(f"Hermes is at work with this bot ({holder.who}, pid {holder.pid}).")
        self._terminal.say("It would take your message away, so it has to pause. Nothing is lost by that.")
        if self._terminal.ask("Let it pause?", default=True, option="--chat ID"):
            self._stopped, self._revive = holder, self._reviver(holder)
            stop()

    def _reviver(self, holder: Holder) -> Callable[[], str]:
        """Return a function that starts this listener again: as the service, or for good, or until idle.

        If our service waits for the locks of this listener, the function restarts the service instead. Both functions
        raise ServiceError.
        """
        state = self._state()
        if state.pid and (state.pid == holder.pid or state.is_of(self._place)):
            return lambda: f"The service was started again: {self._restarted()}"
        return partial(self._start_listener, until_idle=holder.leaves_when_idle)

    def _start_listener(self, *, until_idle: bool) -> str:
        """Start a listener as a hook does it: detached, in a new session. Raises ServiceError."""
        if not self._place.exists():
            raise ServiceError(
                f"the listener was stopped, and cannot be started again without {self._place}: start it as before"
            )
        command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(self._place)]
        subprocess.Popen(
            [*command, "--until-idle"] if until_idle else command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=self._environ,
            start_new_session=True,
        )
        return "The listener was started again, in the background."


def _is_up(state: ServiceState) -> bool:
    return state.active or state.pid > 0
