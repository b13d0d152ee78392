"""The database: schema, migrations, reading and writing of sessions, profiles, bisects and alerts."""
