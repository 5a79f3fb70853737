"""Any program that asks with `hermes hook generic`. Hermes knows only its payload."""
