"""All that Hermes knows of Neovate Code (0.28.2 was run once; here it could not be)."""
