"""Issue trackers: one module for each, with the name that a plan uses and with a function `connect`.

`connect(repository)` returns an implementation of `runners.alerting.tracker.Tracker`, or raises
MissingTokenError. Modules that a tracker needs besides its own stand outside this folder.
"""
