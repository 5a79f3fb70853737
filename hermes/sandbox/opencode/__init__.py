"""A scripted OpenCode server, in the manner of 1.18.33 or of 1.1.53."""
