-- A table whose index has three levels: 400,000 entries.
CREATE TABLE numbers (id integer PRIMARY KEY, v integer NOT NULL);
INSERT INTO numbers SELECT i, i % 1000 FROM generate_series(1, 400000) AS i;
VACUUM ANALYZE numbers;
