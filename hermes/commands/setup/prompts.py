"""The step about prompts: the power of a phone, the danger of a lost one, and whether this phone may send prompts.

Only a person who has read this, or an option, switches prompts on.
"""

from typing import Final

from hermes.commands.setup.context import Context

OPTION: Final = "--prompts or --no-prompts"
TAKERS: Final = "OpenCode, OpenCode 2, Claude Code and oh-my-pi take prompts."
_CLAUDE: Final = (
    "Claude Code tells its model that such a text is not user input and approves nothing, so the model may do less "
    "than you write."
)


def choose_prompts(context: Context, *, phones: int) -> bool:
    """Take the option, or explain and ask; without a person at the terminal, or with `--yes`, nothing changes.

    `phones` is the number of those from which people may answer.
    """
    terminal, given, before = context.terminal, context.given, context.draft.settings.prompts
    if given.prompts is not None:
        return given.prompts
    is_asked = terminal.interactive and not given.yes
    if before.enabled:
        terminal.title("Prompts from your phone")
        where = ", ".join(before.projects) or "all projects"
        terminal.done(f"Your phone may send prompts to your agents, in {where}.")
        terminal.say("If you lose it: /lock in the chat, or `hermes lock` on this computer, stops them.")
        return not is_asked or terminal.ask("Leave prompts on?", default=True, option=OPTION)
    if not is_asked:
        return False
    terminal.title("Prompts from your phone")
    terminal.say(
        "You can also start work from your phone: Hermes gives what you write to an agent on this computer, in a "
        f"session that it has, or in a new one. {TAKERS}"
    )
    terminal.say("A prompt gives the agent no new rights: what it has to ask for, it still asks for.")
    terminal.warn(
        "Somebody who holds your phone while it is unlocked can let your agents read files, change them and run "
        "commands here, as far as the agents' own permission rules allow, and can allow the rest if an agent asks for "
        "it on the phone. With /get they can also fetch files of your projects, except those that git ignores, that "
        "may hold secrets, or that the permissions of OpenCode 1 or Claude Code exclude."
    )
    if phones > 1:
        terminal.warn(f"That is so for the phone of each of the {phones} people who may answer.")
    terminal.say(
        "To end that, send /lock in the chat from another device, or run `hermes lock` here. Hermes then takes nothing "
        "from the phone, and sends none of the prompts that still wait."
    )
    terminal.say(_CLAUDE)
    terminal.say("Prompts may go to all projects, unless `[prompts] projects` in the configuration names some.")
    these = "these phones" if phones > 1 else "this phone"
    return terminal.approve(f"May {these} send prompts to your agents?", option=OPTION)
