"""Escaping of texts where they leave the program: for a terminal, Markdown, HTML, CSV and JSON.

Commits, hosts, logs and imported histories hold texts of others. Callers pass them on as plain strings;
whatever writes an output escapes every plain string, and only the output itself makes markup
(docs/decisions/0058-escaping-by-the-output.md).
"""
