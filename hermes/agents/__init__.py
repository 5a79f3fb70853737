"""The agents that Hermes serves: one folder each, and `registry`, which names them all."""
