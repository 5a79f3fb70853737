"""The adapters of all agents, by the name of the agent.

An adapter is pure: it turns an agent's payload into a signal of `hermes.model`, and a person's decision into the
agent's own form. The code that handles an ask does not branch on the agent's name: each ask carries the capabilities
of its agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from hermes.agents.claude_code import (
    adapter as claude_adapter,
    exclusions as claude_exclusions,
    transcript as claude_transcript,
)
from hermes.agents.generic import adapter as generic_adapter
from hermes.agents.neovate import adapter as neovate_adapter
from hermes.agents.oh_my_pi import adapter as oh_my_pi_adapter
from hermes.agents.opencode import adapter as opencode_adapter, prompting as opencode_prompting
from hermes.agents.opencode2 import adapter as opencode2_adapter, prompting as opencode2_prompting
from hermes.agents.prompting import Excludes
from hermes.model.answer import Decision, Response
from hermes.model.ask import Ask, Capabilities
from hermes.model.prompt import PromptAbilities
from hermes.model.signals import Signal


class Adapter(Protocol):
    """The interface of each agent's `adapter` module."""

    capabilities: Capabilities
    goodbye: str | None
    """The line for a hook that still waits when its ask is over, or whose payload cannot be used; "" prints nothing.

    None: the hook gets no line, because the agent's plugin ends it.
    """

    def read(self, payload: object, *, machine: str) -> Signal:
        """Read a hook's payload (decoded JSON of any shape).

        Raises:
            PayloadError: this agent's plugin does not send such a payload; the message names the place. It contains
                no value from the payload, except the type of an unknown event.
        """

    def answers(self, ask: Ask, decision: Decision) -> Response:
        """Return the answers in the form in which the agent reports them, or the reply to a permission.

        Unless the adapter says otherwise, the tuple of a question holds the exact labels in the order chosen, then the
        free text.

        Raises:
            ValueError: the decision is no answer.
        """

    def waiter_text(self, ask: Ask, decision: Decision) -> str:
        """Return the answer that the waiting hook prints for the agent: one line of JSON without its newline."""


ADAPTERS: Mapping[str, Adapter] = {
    "opencode": opencode_adapter,
    "opencode2": opencode2_adapter,
    "generic": generic_adapter,
    "claude-code": claude_adapter,
    "oh-my-pi": oh_my_pi_adapter,
    "neovate": neovate_adapter,
}

PROMPT_ABILITIES: Mapping[str, PromptAbilities] = {
    "opencode": opencode_prompting.ABILITIES,
    "opencode2": opencode2_prompting.ABILITIES,
    "claude-code": claude_adapter.PROMPTS,
    "oh-my-pi": oh_my_pi_adapter.PROMPTS,
}
"""What the agents can do with prompts; an agent that takes none is missing."""

REFUSALS: Mapping[str, Callable[[str], str]] = {"generic": generic_adapter.refusal}
"""For an agent that is told why its payload cannot be used: the line that the waiting hook prints then."""

BY_HOOK = ("claude-code", "oh-my-pi")
"""The agents whose hooks take prompts from the phone into their sessions."""

INTERRUPTED_AT: Mapping[str, Callable[[str], float | None]] = {"claude-code": claude_transcript.interrupted_at}
"""For an agent whose hooks do not tell it: when its record of a session says that the last turn was interrupted."""

EXCLUSIONS: Mapping[str, Callable[[str, str], Excludes]] = {"claude-code": claude_exclusions.exclusions}
"""For an agent without a server: which files its settings keep from a session in this folder, whose record is at this
path, "" if it is not known. Raises AgentRefused."""
