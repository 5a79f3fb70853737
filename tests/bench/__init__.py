"""The benchmark: what Hermes costs and how fast it is, measured on real processes. `make bench`; see `__main__`."""
