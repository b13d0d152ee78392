-- Rows that transactions update and leave as they were.
CREATE TABLE counters (id integer PRIMARY KEY, v integer NOT NULL);
INSERT INTO counters SELECT i, 0 FROM generate_series(1, 1000) AS i;
VACUUM ANALYZE counters;
