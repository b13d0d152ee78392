-- Rounds that were disturbed and measured again, and how much identical builds differ on a machine.

CREATE TABLE dropped_rounds (
    id $id,
    session_id $integer NOT NULL REFERENCES sessions (id),
    step TEXT NOT NULL,
    repetition $integer NOT NULL CHECK (repetition >= 1),
    dropped_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    measured TEXT NOT NULL
) $strict;

CREATE INDEX dropped_rounds_by_session ON dropped_rounds (session_id);

CREATE TABLE calibrations (
    session_id $integer NOT NULL REFERENCES sessions (id),
    step TEXT NOT NULL,
    metric TEXT NOT NULL REFERENCES metrics (name),
    sd $real NOT NULL CHECK (sd >= 0),
    degrees_of_freedom $real NOT NULL CHECK (degrees_of_freedom > 0),
    rounds $integer NOT NULL,
    PRIMARY KEY (session_id, step, metric)
) $clustered;
