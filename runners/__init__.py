"""The service and the command line: plans a session, carries it out, shows what came of it."""
