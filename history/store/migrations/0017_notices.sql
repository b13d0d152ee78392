-- What people are told besides issues: one row each time, with the routes that have still to get it.

CREATE TABLE notices (
    id $id,
    subject TEXT NOT NULL,
    number $integer NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN (
        'new', 'returned', 'confirmed', 'fixed', 'trouble', 'over', 'digest', 'night'
    )),
    occasion TEXT NOT NULL,
    text TEXT NOT NULL,
    happened_at TEXT NOT NULL,
    waiting TEXT,
    UNIQUE (subject, number)
) $strict;
