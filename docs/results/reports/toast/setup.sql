CREATE TABLE documents (id bigserial PRIMARY KEY, body text NOT NULL);
INSERT INTO documents (body) SELECT repeat(md5(n::text), 200) FROM generate_series(1, 2000) n;
ANALYZE documents;
