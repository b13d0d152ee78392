CREATE TABLE counters (id int PRIMARY KEY, value int NOT NULL) WITH (fillfactor = 50);
INSERT INTO counters SELECT n, 0 FROM generate_series(1, 10000) n;
ANALYZE counters;
-- Updates 100 rows in as many subtransactions, of which a snapshot holds 64, and stays open for 20 ms.
CREATE FUNCTION many_subtransactions(first int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN first .. first + 99 LOOP
        BEGIN
            UPDATE counters SET value = value + 1 WHERE id = n;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
    END LOOP;
    PERFORM pg_sleep(0.02);
END $$;
