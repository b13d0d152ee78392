"""Extensions of Postgres: compiled from git by PGXS, and installed into a copy of a build."""
