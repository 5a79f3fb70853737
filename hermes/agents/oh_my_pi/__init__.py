"""Everything in Hermes that is specific to oh-my-pi. Version 18.2.3 was run."""
