"""Simulators that the demo and the tests share: a strict Bot API, a scripted OpenCode, a scripted model."""
