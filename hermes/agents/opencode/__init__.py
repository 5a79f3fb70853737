"""All that Hermes knows of OpenCode ("new" is 1.18.33, "old" is 1.1.53: both were run)."""
