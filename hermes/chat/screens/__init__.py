"""What every message looks like, as values. Pure: no network, no clock."""
