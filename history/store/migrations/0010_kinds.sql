-- What a run measured of each kind of its transactions, where the suite tells kinds apart.

CREATE TABLE kinds (
    run_id $integer NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL,
    metric TEXT NOT NULL REFERENCES metrics (name),
    value $real NOT NULL,
    PRIMARY KEY (run_id, kind, metric)
) $clustered;
