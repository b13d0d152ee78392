"""Issue trackers: one module for each, with the name that a plan uses.

`connect(repository, url)` returns an implementation of `runners.alerting.tracker.Tracker`, or raises
MissingTokenError. `issue_pages(url)` returns the address of an issue's page, with `{repository}` and
`{number}`. `url` is that of the tracker's pages as the plan names it, or None. Modules that a tracker needs
besides its own stand outside this folder.
"""
