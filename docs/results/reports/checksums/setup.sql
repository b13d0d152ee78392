CREATE TABLE accounts (id int PRIMARY KEY, branch int NOT NULL, balance int NOT NULL, filler char(84) NOT NULL);
INSERT INTO accounts SELECT n, 1, 0, '' FROM generate_series(1, 100000) n;
CREATE INDEX ON accounts (branch);
ANALYZE accounts;
