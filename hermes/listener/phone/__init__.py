"""The phone side of the listener: it handles Telegram updates and keeps the messages in the chat up to date."""
