"""Everything in Hermes that is specific to OpenCode. Two versions were run: 1.1.53 and 1.18.33."""
