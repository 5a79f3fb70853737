"""All that Hermes knows of OpenCode (contract: OpenCode 1.18.33, "new", and 1.1.53, "old")."""
