-- Which functions executed the counted instructions of a run, as folded stacks, and how often each was called.

CREATE TABLE counted_profiles (
    run_id $integer PRIMARY KEY REFERENCES runs (id),
    queries $real NOT NULL CHECK (queries > 0),
    stacks $bytes NOT NULL,
    calls $bytes NOT NULL
) $strict;
