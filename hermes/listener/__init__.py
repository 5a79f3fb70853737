"""The daemon. `phone` and `agent` are its two sides; they meet only in `entries`."""
