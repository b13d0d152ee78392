-- What was asked of the issue tracker and not answered yet, and the repository that an issue is in.

ALTER TABLE alerts ADD COLUMN asked_state TEXT CHECK (asked_state IN ('open', 'closed'));

ALTER TABLE alerts ADD COLUMN repository TEXT;

-- Attempts that failed may have been carried out all the same.
UPDATE alerts SET asked_state = wanted WHERE attempts > 0 AND (issue IS NOT NULL OR wanted = 'open');
