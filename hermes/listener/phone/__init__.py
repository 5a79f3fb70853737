"""The phone side of the listener: what comes from Telegram, and what the chat shows."""
