-- What went on beside queries in the seconds of a run: checkpoints, vacuums, and stalls.

CREATE TABLE activities (
    run_id $integer NOT NULL REFERENCES runs (id),
    activity TEXT NOT NULL,
    first_second $integer NOT NULL CHECK (first_second >= 1),
    last_second $integer NOT NULL CHECK (last_second >= first_second),
    PRIMARY KEY (run_id, activity, first_second)
) $clustered;
