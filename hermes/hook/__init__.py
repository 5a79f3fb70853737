"""The process that an agent starts for each event. It uses only the standard library, because the agent waits."""
