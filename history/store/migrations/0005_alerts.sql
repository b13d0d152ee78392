-- What people are to be told, and what of it the issue tracker has already: an outbox.

CREATE TABLE alerts (
    id $id,
    fingerprint TEXT NOT NULL UNIQUE,
    nonce TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('change', 'build', 'crash', 'summary')),
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    wanted TEXT NOT NULL CHECK (wanted IN ('open', 'closed')),
    closing TEXT NOT NULL,
    within TEXT,
    silenced TEXT,
    issue $integer,
    issue_state TEXT CHECK (issue_state IN ('open', 'closed')),
    sent_digest TEXT,
    attempts $integer NOT NULL,
    last_error TEXT,
    not_before TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((issue IS NULL) = (issue_state IS NULL))
) $strict;
