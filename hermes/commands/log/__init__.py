"""`hermes log`."""
