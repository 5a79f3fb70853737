"""The store, in files or in a PostgreSQL database, the locks, and the files that Hermes installs elsewhere."""
