"""Everything that lets Hermes be tried without Telegram and without a paid model: local, scripted, strict."""
