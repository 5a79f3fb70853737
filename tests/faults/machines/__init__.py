"""Rounds with three machines: they share a bot and a real PostgreSQL, and each has a home and a listener of its own."""
