"""Claude Code, whose hooks are commands that its settings name."""
