"""Real OpenCode processes, terminals and connections for the tests."""
