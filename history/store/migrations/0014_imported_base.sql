-- The base of a table that was imported is what a person says, and no longer the lowest version in it.

UPDATE nights SET is_base = 0 WHERE session_id IN (SELECT id FROM sessions WHERE substr(uid, 1, 9) = 'imported-');
