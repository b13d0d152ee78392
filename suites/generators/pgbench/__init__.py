"""pgbench, the load generator that is part of Postgres."""
