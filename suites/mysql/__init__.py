"""The MySQL server: settings, data directory, accounts and thread roles."""
