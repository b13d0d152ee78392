"""What people are told besides issues: lines for the routes of a plan, in an outbox of the history."""
