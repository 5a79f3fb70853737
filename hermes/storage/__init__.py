"""Files on disk: entries, the chat memory, their locks and format, and the files that Hermes installs elsewhere."""
