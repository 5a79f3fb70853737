"""The agents that Hermes supports: one folder for each, and `registry` with the adapters of all."""
