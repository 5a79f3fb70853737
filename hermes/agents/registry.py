"""The agents that Hermes serves: one folder each, and the one place that names them all.

An adapter is pure: it turns what an agent hands over into the words of `hermes.model`, and a person's
decision into the agent's own form. Nothing outside an adapter asks which agent it is; what an agent can do
stands in its capabilities, and an ask carries them with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hermes.agents.claude_code import adapter as claude_adapter
from hermes.agents.generic import adapter as generic_adapter
from hermes.agents.neovate import adapter as neovate_adapter
from hermes.agents.oh_my_pi import adapter as oh_my_pi_adapter
from hermes.agents.opencode import adapter as opencode_adapter
from hermes.model.answer import Decision
from hermes.model.ask import Ask, Capabilities
from hermes.model.signals import Signal


class Adapter(Protocol):
    """What each agent's `adapter` module offers."""

    capabilities: Capabilities
    goodbye: str | None
    """What a hook prints that still waits when its ask is over ("" is nothing), None where its plugin ends it."""

    def read(self, payload: object, *, machine: str) -> Signal:
        """Understand a hook's payload (decoded JSON of any shape).

        Raises:
            PayloadError: it is not what this agent's plugin sends; the text names the place, never a value.
        """
        ...

    def answers(self, ask: Ask, decision: Decision) -> tuple[tuple[str, ...], ...]:
        """Return what goes out: for each question its exact labels as chosen, then the free text."""
        ...

    def waiter_text(self, ask: Ask, decision: Decision) -> str:
        """Return what the waiting hook prints for the plugin: one line of JSON without its newline."""
        ...

    def refusal(self, why: str) -> str:
        """Return what the waiting hook prints where its payload was not understood, "" where nobody would read it."""
        ...


ADAPTERS: Mapping[str, Adapter] = {
    "opencode": opencode_adapter,
    "generic": generic_adapter,
    "claude-code": claude_adapter,
    "oh-my-pi": oh_my_pi_adapter,
    "neovate": neovate_adapter,
}
