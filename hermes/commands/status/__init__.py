"""`hermes status`."""
