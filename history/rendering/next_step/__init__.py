"""The last line of an answer: how it stands in one sentence, and the one command that comes next."""
