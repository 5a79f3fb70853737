"""`hermes setup`: the first configuration of Hermes, and later changes of it.

The setup first asks all questions, with one module for each step: `bot` (the bot), `people` (the chat and the users who
may answer; with `pairing` a user proves to be there), `parts` (agents, test), `database` (the store that several
machines share), `prompts` (may the phone start work), and `background` (the service). Only then `finish` makes all
changes: until the last question is answered, Ctrl-C leaves the configuration as it was. `wizard` holds the order,
`context` what every step needs; `joining` is the short way of a machine without the bot.

Each step takes its answer from an option, else from the present configuration, else from the person at the terminal.
"""
