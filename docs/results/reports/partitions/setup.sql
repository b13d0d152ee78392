-- 100 partitions, and an index on a column that is not the key: no partition can be left out of a search by it.
CREATE TABLE accounts (id int NOT NULL, parent int NOT NULL, balance int NOT NULL) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE accounts_%s PARTITION OF accounts FOR VALUES FROM (%s) TO (%s)', n, n * 1000, (n + 1) * 1000)
FROM generate_series(0, 99) n \gexec
INSERT INTO accounts SELECT n, n, 0 FROM generate_series(0, 99999) n;
CREATE INDEX ON accounts (parent);
ANALYZE accounts;
