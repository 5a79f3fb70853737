"""Any program that asks by `hermes hook generic`: nothing is known of it but what it says."""
