"""`hermes setup`: the first five minutes, and whatever is to be changed after them.

First everything is asked, one module a step: `bot` (which bot), `people` (which chat, who may answer; `pairing` is
how somebody proves to be there), `parts` (agents, service, test). Only then anything is done, by `finish`: until the
last question was answered, Ctrl-C leaves everything as it was. `wizard` holds the order.

Each step takes its answer from an option, else from what is configured already, else from the person at the terminal.
"""
