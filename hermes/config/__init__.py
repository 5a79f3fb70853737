"""The configuration: its keys, the reading of it, and the set-up of the log."""
