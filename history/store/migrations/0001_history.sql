-- The history: machines, sessions, builds, configurations, runs and what they measured.
-- Plain SQL of SQLite and Postgres; what differs is a placeholder (history/store/migrate.py).

CREATE TABLE schema_migrations (
    number $integer NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
) $strict;

CREATE TABLE machines (
    id $id,
    fingerprint TEXT NOT NULL UNIQUE,
    hostname TEXT NOT NULL,
    cpu_model TEXT NOT NULL,
    cores $integer NOT NULL,
    memory_bytes $integer NOT NULL,
    kernel TEXT NOT NULL,
    operating_system TEXT NOT NULL,
    details TEXT NOT NULL
) $strict;

CREATE TABLE sessions (
    id $id,
    uid TEXT NOT NULL UNIQUE,
    machine_id $integer NOT NULL REFERENCES machines (id),
    suite TEXT NOT NULL,
    profile TEXT NOT NULL,
    suite_digest TEXT NOT NULL,
    seed $integer NOT NULL,
    durability TEXT NOT NULL,
    repetitions $integer NOT NULL CHECK (repetitions >= 1),
    started_at TEXT NOT NULL,
    ended_at TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'finished', 'interrupted', 'failed')),
    command TEXT NOT NULL,
    tools TEXT NOT NULL,
    options TEXT NOT NULL,
    process_id $integer NOT NULL,
    process_start_ticks $integer NOT NULL,
    boot_id TEXT NOT NULL,
    CHECK ((status = 'running') = (ended_at IS NULL))
) $strict;

CREATE INDEX sessions_by_start ON sessions (started_at);

CREATE TABLE builds (
    id $id,
    key TEXT NOT NULL UNIQUE,
    engine TEXT NOT NULL,
    release TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    source_digest TEXT NOT NULL,
    compiler TEXT NOT NULL,
    manifest TEXT NOT NULL
) $strict;

CREATE TABLE configurations (
    id $id,
    digest TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL
) $strict;

CREATE TABLE runs (
    id $id,
    session_id $integer NOT NULL REFERENCES sessions (id),
    build_id $integer NOT NULL REFERENCES builds (id),
    version TEXT NOT NULL,
    configuration_id $integer REFERENCES configurations (id),
    step TEXT NOT NULL,
    step_position $integer NOT NULL,
    repetition $integer NOT NULL CHECK (repetition >= 1),
    position $integer NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('finished', 'failed', 'interrupted')),
    failure TEXT,
    warnings TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    UNIQUE (session_id, version, step, repetition)
) $strict;

CREATE INDEX runs_by_version ON runs (version, session_id);

CREATE TABLE metrics (
    name TEXT NOT NULL PRIMARY KEY,
    unit TEXT NOT NULL,
    better TEXT NOT NULL CHECK (better IN ('higher', 'lower', 'neither')),
    description TEXT NOT NULL
) $strict;

CREATE TABLE measurements (
    run_id $integer NOT NULL REFERENCES runs (id),
    metric TEXT NOT NULL REFERENCES metrics (name),
    value $real NOT NULL,
    PRIMARY KEY (run_id, metric)
) $clustered;

CREATE TABLE samples (
    run_id $integer NOT NULL REFERENCES runs (id),
    second $integer NOT NULL CHECK (second >= 1),
    qps $real NOT NULL,
    PRIMARY KEY (run_id, second)
) $clustered;

-- Derived, never stored: another base version changes no row of the history.
CREATE VIEW relative_qps AS
SELECT
    base.session_id AS session_id,
    base.step AS step,
    base.repetition AS repetition,
    base.version AS base_version,
    contender.version AS contender_version,
    base_qps.value AS base_qps,
    contender_qps.value AS contender_qps,
    contender_qps.value / NULLIF(base_qps.value, 0) AS relative_qps
FROM runs AS base
JOIN runs AS contender
    ON contender.session_id = base.session_id
    AND contender.step = base.step
    AND contender.repetition = base.repetition
    AND contender.version <> base.version
JOIN measurements AS base_qps ON base_qps.run_id = base.id AND base_qps.metric = 'qps'
JOIN measurements AS contender_qps ON contender_qps.run_id = contender.id AND contender_qps.metric = 'qps'
WHERE base.status = 'finished' AND contender.status = 'finished';
