"""The facts about an agent that its hook needs: the shape of its payloads, and which payloads ask something."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class PromptPlace:
    """The session in which a hook waits for prompts from the phone.

    `record`: the path of its record. `begins`: it begins now, maybe again after its end. `resumed`: it begins again,
    and no turn runs in it yet.
    """

    def __init__(
        self,
        session_id: str,
        directory: str = "",
        title: str = "",
        record: str = "",
        *,
        begins: bool = True,
        resumed: bool = False,
    ) -> None:
        self.session_id = session_id
        self.directory = directory
        self.title = title
        self.record = record
        self.begins = begins
        self.resumed = resumed


class PromptShape:
    """How the hooks of an agent bring prompts from the phone into its sessions.

    A hook with --prompts that `stays` prints a line of JSON for each prompt; any other one prints one prompt on stderr
    and ends with the status 2. `place` returns for a payload and the environment the session in which it waits, None if
    it may not: nobody sits there. `ends_session` returns whether a payload says that its session is over. `adds`
    returns what the hook adds to a payload, from the payload and the environment.
    """

    def __init__(
        self,
        place: Callable[[Mapping[str, Any], Mapping[str, str]], PromptPlace | None],
        *,
        stays: bool = False,
        ends_session: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        adds: Callable[[Mapping[str, Any], Mapping[str, str]], dict[str, Any]] = lambda _, __: {},
    ) -> None:
        self.place = place
        self.stays = stays
        self.ends_session = ends_session
        self.adds = adds


class Shape:
    """The shape of one agent's payloads, and how its hooks run.

    `keys` must be in a payload, each with a value of its type ("context" may be missing); `carried` are the keys that
    the hook keeps, None for all. `asks` returns whether a payload is an ask; the others are news. News for which
    `needs_listener` returns True concerns no ask, and is dropped if no listener runs and prompts from the phone are
    off. An agent with `calls` starts a second hook with --wait for each ask; the hook of any other agent always waits.
    A hook that was started `by_hand` also ends at Ctrl-C and when its terminal closes. `has_desk` returns whether the
    agent itself shows a dialog for this ask while the hook waits.

    `prompts` is about its hooks with --prompts; None: this agent takes no prompts from the phone by a hook.
    """

    def __init__(
        self,
        keys: Mapping[str, type],
        carried: tuple[str, ...] | None,
        asks: Callable[[Mapping[str, Any]], bool],
        *,
        needs_listener: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        calls: bool = False,
        by_hand: bool = False,
        has_desk: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        prompts: PromptShape | None = None,
    ) -> None:
        self.keys = keys
        self.carried = carried
        self.asks = asks
        self.needs_listener = needs_listener
        self.calls = calls
        self.by_hand = by_hand
        self.has_desk = has_desk
        self.prompts = prompts
