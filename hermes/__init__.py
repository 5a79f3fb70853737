"""Hermes: answer a coding agent's questions from a phone."""

__version__ = "0.1.0"
