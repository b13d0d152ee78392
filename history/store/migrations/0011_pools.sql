-- Which box of a pool measures what: the last row of a task says where it is measured, the others where it was.

CREATE TABLE pool_boxes (
    pool TEXT NOT NULL,
    box TEXT NOT NULL,
    hostname TEXT,
    seen_at TEXT NOT NULL,
    missed $integer NOT NULL,
    missed_at TEXT,
    left_at TEXT,
    PRIMARY KEY (pool, box)
) $clustered;

CREATE TABLE placements (
    pool TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    branch TEXT NOT NULL,
    number $integer NOT NULL,
    box TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('new', 'joined', 'gone', 'plan')),
    placed_at TEXT NOT NULL,
    PRIMARY KEY (pool, suite, configuration, branch, number)
) $clustered;
