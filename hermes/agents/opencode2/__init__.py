"""OpenCode 2: found by its own discovery file, followed and answered through its HTTP API; it needs no plugin."""
