-- What was found when a commit of a branch was measured against an earlier one in the same night, interleaved.
-- Derived from the runs of the session that did it, and kept when they are pruned.

CREATE TABLE confirmations (
    session_id $integer NOT NULL REFERENCES sessions (id),
    series_id $integer NOT NULL REFERENCES series (id),
    question TEXT NOT NULL CHECK (question IN ('new', 'gone')),
    before_id $integer NOT NULL REFERENCES sessions (id),
    after_id $integer NOT NULL REFERENCES sessions (id),
    finding TEXT NOT NULL CHECK (finding IN ('more', 'less', 'same', 'unknown')),
    level_before $real NOT NULL,
    ratio $real NOT NULL,
    ratio_low $real NOT NULL,
    ratio_high $real NOT NULL,
    rounds $integer NOT NULL,
    confidence $real NOT NULL,
    PRIMARY KEY (session_id, series_id)
) $clustered;

CREATE INDEX confirmations_by_series ON confirmations (series_id);
