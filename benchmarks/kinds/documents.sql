-- Documents that queries put together with others.
CREATE TABLE documents (id integer PRIMARY KEY, doc jsonb NOT NULL);
INSERT INTO documents SELECT i, jsonb_build_object('a', i) FROM generate_series(1, 1000) AS i;
VACUUM ANALYZE documents;
