"""Everything in Hermes that is specific to Claude Code, which runs the hooks that its settings name."""
