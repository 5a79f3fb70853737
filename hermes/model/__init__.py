"""The data types of Hermes: frozen values without behaviour and without I/O. Read this package first.

    ask          a request of an agent (questions, or one permission), and where it comes from
    answer       the answer of a person, the decision that is sent to the agent, and the outcome
    state        the dialog about one ask, and the result of one event
    actions      the meaning of each button
    events       the events of an ask, and the updates from Telegram
    entry        an ask as the store keeps it: with its dialog, its messages and its times
    signals      the reports of an agent about its asks and its turns
    notice       a turn that has ended, and its message on the phone
    verdicts     the state of a request at its agent
    chat_memory  the data of one bot that survives a restart

`core` decides with these values, and `storage` writes them to disk. These words have one meaning everywhere:

- phone: the Telegram chat.
- desk: the agent's own terminal or web page.
- adapter: the module in `hermes.agents` that translates between one agent and these types.
- hook: the short-lived process of Hermes that an agent's plugin starts.
- listener: the long-running process of Hermes.
- session: a conversation with an agent. A subagent has its own session, below the root session.

A number whose name ends in `_s` is in seconds: a time since the epoch, or a duration. An option is identified by its
index, because labels can be equal or empty.
"""
