"""The look of every message, as values. Pure: no network, no clock."""
