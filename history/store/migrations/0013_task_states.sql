-- What the last night of a box found of each version or branch that its plan tracks there. And a session in which
-- nothing was measured is no night any more.

CREATE TABLE task_states (
    box TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    tracked TEXT NOT NULL,
    hostname TEXT NOT NULL,
    version TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN (
        'pending', 'measured', 'disturbed', 'current', 'budget', 'unreachable', 'unavailable', 'unusable',
        'failed', 'stopped', 'busy', 'paused'
    )),
    reason TEXT NOT NULL,
    since TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    fetched_at TEXT,
    PRIMARY KEY (box, suite, configuration, tracked)
) $clustered;

-- DISTINCT, because Postgres hashes a short list, and would go through a long one for every row.
DELETE FROM gaps WHERE session_id NOT IN (SELECT DISTINCT session_id FROM points) AND session_id NOT IN (
    SELECT DISTINCT session_id FROM runs WHERE status = 'finished' OR substr(failure, 1, 11) = 'censored at'
);

DELETE FROM nights WHERE session_id NOT IN (SELECT DISTINCT session_id FROM points) AND session_id NOT IN (
    SELECT DISTINCT session_id FROM runs WHERE status = 'finished' OR substr(failure, 1, 11) = 'censored at'
);
