"""Everything in Hermes that is specific to Telegram.

`screens` turns an entry into messages, without input or output. `bot` calls the Bot API, `outbox` queues the calls,
`poll` receives the taps and texts of the person, and `incoming` decides which of them count.
"""
