-- What the clients of a run did, as sampled: waited for, or executed.

CREATE TABLE wait_profiles (
    run_id $integer PRIMARY KEY REFERENCES runs (id),
    frequency $real NOT NULL CHECK (frequency > 0),
    queries $real NOT NULL CHECK (queries > 0),
    stacks $bytes NOT NULL
) $strict;
