"""The MariaDB server: settings, data directory, accounts and thread roles."""
