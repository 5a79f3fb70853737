"""Everything in Hermes that is specific to Neovate Code. Version 0.28.2 was run once; the tests do not run it."""
