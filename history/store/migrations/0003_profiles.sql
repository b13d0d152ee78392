-- Where the CPU time of a run went, as folded stacks.

CREATE TABLE profiles (
    run_id $integer PRIMARY KEY REFERENCES runs (id),
    event TEXT NOT NULL,
    frequency $real NOT NULL CHECK (frequency > 0),
    queries $real NOT NULL CHECK (queries > 0),
    lost $integer NOT NULL CHECK (lost >= 0),
    stacks $bytes NOT NULL
) $strict;
