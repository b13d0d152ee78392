-- Whose changes are, which of them the plan mutes, and whom an issue is assigned to.

CREATE TABLE change_owners (
    change_id $integer NOT NULL REFERENCES changes (id),
    place $integer NOT NULL CHECK (place >= 1),
    account TEXT NOT NULL,
    is_assignee $integer NOT NULL CHECK (is_assignee IN (0, 1)),
    rule TEXT NOT NULL,
    PRIMARY KEY (change_id, place)
) $clustered;

CREATE TABLE mutings (
    change_id $integer PRIMARY KEY REFERENCES changes (id),
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    until TEXT NOT NULL,
    muted_at TEXT NOT NULL,
    ended_at TEXT,
    ended_why TEXT,
    is_outgrown $integer CHECK (is_outgrown IN (0, 1))
) $strict;

CREATE TABLE mutes (
    rule TEXT PRIMARY KEY,
    until TEXT NOT NULL,
    since TEXT NOT NULL,
    matched_at TEXT,
    told_at TEXT
) $clustered;

ALTER TABLE alerts ADD COLUMN assignee TEXT;

ALTER TABLE alerts ADD COLUMN assigned TEXT;
