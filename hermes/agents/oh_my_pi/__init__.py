"""All that Hermes knows of oh-my-pi (18.2.3 was run)."""
