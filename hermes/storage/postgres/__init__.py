"""The store in a PostgreSQL database, for several machines with one bot."""
