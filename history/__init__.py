"""The history: sessions, runs, series and changes in a database, and the statistics computed from them."""
