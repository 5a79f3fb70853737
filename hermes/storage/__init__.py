"""What Hermes keeps on disk: entries and chat memory, their locks, their form, and the files it installs elsewhere."""
