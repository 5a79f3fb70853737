"""A scripted OpenCode server that behaves as 1.18.33 or as 1.1.53."""
