"""`hermes demo`: try Hermes without Telegram and without a paid model, against local, scripted, strict servers."""
