-- Values over nights, the changes found in them, and what people said of these.
-- A night is a session that ended. Its rows here are derived from its runs, and stay when those are pruned.

CREATE TABLE nights (
    session_id $integer NOT NULL REFERENCES sessions (id),
    branch TEXT NOT NULL,
    version TEXT NOT NULL,
    build_id $integer REFERENCES builds (id),
    is_base $integer NOT NULL CHECK (is_base IN (0, 1)),
    box TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    started_at TEXT NOT NULL,
    PRIMARY KEY (session_id, branch)
) $clustered;

-- All that a series asks of its nights, so that the index alone answers.
CREATE INDEX nights_in_order
ON nights (box, suite, configuration, branch, started_at, session_id, version, build_id);

CREATE INDEX nights_by_version ON nights (version, started_at);

CREATE INDEX nights_by_branch ON nights (branch, started_at);

-- Sessions that run have no night yet.
CREATE INDEX sessions_by_status ON sessions (status, started_at);

-- There are few calibrations: they lead to their sessions, and not the other way.
CREATE INDEX calibrations_by_metric ON calibrations (metric, session_id);

CREATE TABLE series (
    id $id,
    box TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    branch TEXT NOT NULL,
    step TEXT NOT NULL,
    metric TEXT NOT NULL REFERENCES metrics (name),
    step_position $integer NOT NULL,
    UNIQUE (box, suite, configuration, branch, step, metric)
) $strict;

CREATE TABLE points (
    series_id $integer NOT NULL REFERENCES series (id),
    session_id $integer NOT NULL REFERENCES sessions (id),
    value $real NOT NULL,
    PRIMARY KEY (series_id, session_id)
) $clustered;

CREATE TABLE gaps (
    session_id $integer NOT NULL REFERENCES sessions (id),
    branch TEXT NOT NULL,
    step TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (session_id, branch, step)
) $clustered;

CREATE TABLE changes (
    id $id,
    fingerprint TEXT NOT NULL UNIQUE,
    branch TEXT NOT NULL,
    suite TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('regression', 'improvement', 'mixed', 'shift')),
    status TEXT NOT NULL CHECK (status IN ('open', 'closed', 'acknowledged', 'explained')),
    reason TEXT,
    found_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) $strict;

CREATE TABLE change_series (
    change_id $integer NOT NULL REFERENCES changes (id),
    series_id $integer NOT NULL REFERENCES series (id),
    last_before_id $integer NOT NULL REFERENCES sessions (id),
    first_after_id $integer NOT NULL REFERENCES sessions (id),
    raised_id $integer NOT NULL REFERENCES sessions (id),
    level_before $real NOT NULL,
    level_after $real NOT NULL,
    ratio_low $real NOT NULL,
    ratio_high $real NOT NULL,
    confidence $real NOT NULL,
    gone_id $integer REFERENCES sessions (id),
    PRIMARY KEY (change_id, series_id)
) $clustered;
