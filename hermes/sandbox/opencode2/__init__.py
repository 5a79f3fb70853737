"""A strict stand-in for OpenCode 2, in the two shapes that were described: it refuses what the real one refuses."""
