"""Whole stories: a real OpenCode asks, a person answers on the phone, and the model receives exactly that."""
