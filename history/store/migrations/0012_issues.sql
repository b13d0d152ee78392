-- What of an issue is Tidemark's, which alerts an issue tells together, and what people decided about changes.

-- What was sent last, and the number of the tracker's latest issue before it was asked to open one.
ALTER TABLE alerts ADD COLUMN sent_title TEXT;

ALTER TABLE alerts ADD COLUMN sent_body TEXT;

ALTER TABLE alerts ADD COLUMN asked_after $integer;

-- Why it is to be closed, the last night that shows it, and when a person closed it as completed.
ALTER TABLE alerts ADD COLUMN closed_as TEXT CHECK (closed_as IN ('completed', 'not_planned', 'duplicate'));

ALTER TABLE alerts ADD COLUMN seen_at TEXT;

ALTER TABLE alerts ADD COLUMN resolved_at TEXT;

ALTER TABLE alerts ADD COLUMN unmuted_at TEXT;

-- What the issue tells; null if that is only what the fingerprint names.
ALTER TABLE alerts ADD COLUMN members TEXT;

CREATE TABLE acknowledgements (
    change_id $integer NOT NULL REFERENCES changes (id),
    happened_at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('acknowledged', 'withdrawn', 'expired')),
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    until TEXT,
    PRIMARY KEY (change_id, happened_at)
) $clustered;

INSERT INTO acknowledgements (change_id, happened_at, kind, who, reason)
SELECT id, updated_at, 'acknowledged', '', coalesce(reason, '') FROM changes WHERE status = 'acknowledged';
