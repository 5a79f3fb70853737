"""The commands of a project, as prompts. Pure.

OpenCode has a route that runs a command, but it answers only when the turn has ended, takes no ids for the parts (a
request that arrives twice is in the prompt twice), runs `` !`…` `` of the template and of the arguments in a shell, and
puts the answer of a subtask under another prompt. So Hermes fills in the template by OpenCode's rules and sends it as a
prompt, with the command's agent and model. Two things differ: files that the template names with "@" are not attached,
so that the model has to read them; and no `command.executed` is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hermes.agents.opencode.wire import Agent, Command
from hermes.errors import AgentRefused

_SHELL: Final = "!`"
_WORDS: Final = re.compile(r"""\[Image\s+[0-9]+\]|"[^"]*"|'[^']*'|[^\s"']+""", re.IGNORECASE)
_PLACES: Final = re.compile(r"\$(?:([0-9]+)|ARGUMENTS)")
NAMED: Final = 20


def chosen(commands: Iterable[Command], name: str) -> Command:
    """Return the command with this name. Raises AgentRefused: there is none, or it cannot be sent from here."""
    known = {one.name: one for one in commands}
    can = [one.name for one in known.values() if isinstance(one.template, str) and _SHELL not in one.template]
    if name in can:
        return known[name]
    if name not in known:
        why = f"there is no command “{name}”"
    elif isinstance(known[name].template, str):
        why = f"“{name}” runs a shell"
    else:
        why = f"“{name}” cannot be sent from here"
    raise AgentRefused("no such command", said=f"{why}; you can send: {', '.join(sorted(can)[:NAMED]) or 'none'}")


def filled(template: str, arguments: str) -> str:
    """Return the template with its arguments, by the rules of OpenCode.

    `$1` is the first word and so on; the highest number takes the rest, too. `$ARGUMENTS` is all. If the template has
    no place for them, they follow it.
    """
    words = [re.sub(r"^[\"']|[\"']$", "", word) for word in _WORDS.findall(arguments)]
    places = list(_PLACES.finditer(template))
    last = max((int(place[1]) for place in places if place[1]), default=0)

    def value(place: re.Match[str]) -> str:
        if place[1] is None:
            return arguments
        number = int(place[1])
        return " ".join(words[number - 1 :] if number == last else words[number - 1 : number])

    text = _PLACES.sub(value, template)
    if not places and arguments.strip():
        text += f"\n\n{arguments}"
    return text.strip()


def prompt_of(command: Command, arguments: str, agents: Sequence[Agent]) -> dict[str, Any]:
    """Return the prompt that a command is: `parts`, and `agent` and `model` if it names them."""
    text = filled(str(command.template), arguments)
    more: dict[str, Any] = {}
    if command.model:
        provider, _, model = command.model.partition("/")
        more["model"] = {"providerID": provider, "modelID": model}
    agent = next((one for one in agents if one.name == command.agent), None)
    is_subagent = agent is not None and agent.mode == "subagent"
    if command.subtask or (is_subagent and command.subtask is None):
        name = command.agent or next(one.name for one in agents if one.mode != "subagent" and not one.hidden)
        about = command.description or command.name
        return {"parts": [{"type": "subtask", "agent": name, "description": about, "prompt": text, **more}]}
    if command.agent:
        more["agent"] = command.agent
    return {"parts": [{"type": "text", "text": text}], **more}
