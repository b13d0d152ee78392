"""Statistics without a database: distributions, estimators, sequential designs, change points."""
