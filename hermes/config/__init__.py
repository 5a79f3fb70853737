"""The configuration: its keys, how it is read, and the log that it sets up."""
