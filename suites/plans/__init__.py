"""Plans of statements: how a server says that it carries them out, and how two plans differ."""
