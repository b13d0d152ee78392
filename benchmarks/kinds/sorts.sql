-- Rows of which 5,000 are sorted at a time, which takes about a quarter of a megabyte.
CREATE TABLE numbers (id integer PRIMARY KEY, v integer NOT NULL);
INSERT INTO numbers SELECT i, i * 7919 % 100003 FROM generate_series(1, 100000) AS i;
VACUUM ANALYZE numbers;
