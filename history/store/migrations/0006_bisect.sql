-- Searches for the commit that changed a metric, and what happened in each, in order.
-- A search is a function of its events and of the runs of the sessions that these name.

CREATE TABLE bisects (
    id $id,
    uid TEXT NOT NULL UNIQUE,
    machine_id $integer NOT NULL REFERENCES machines (id),
    question TEXT NOT NULL,
    span TEXT NOT NULL,
    change_fingerprint TEXT,
    began_at TEXT NOT NULL
) $strict;

CREATE TABLE bisect_events (
    bisect_id $integer NOT NULL REFERENCES bisects (id),
    number $integer NOT NULL CHECK (number >= 1),
    kind TEXT NOT NULL CHECK (kind IN ('session', 'built', 'excluded', 'verdict', 'profiled')),
    session_uid TEXT,
    detail TEXT NOT NULL,
    happened_at TEXT NOT NULL,
    PRIMARY KEY (bisect_id, number)
) $clustered;

-- Whether a session is one of a bisect: comparisons and nights leave those out.
CREATE INDEX bisect_events_by_session ON bisect_events (session_uid);
