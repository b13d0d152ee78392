"""A box of the nightly service: installed, checked with its plan, paused, and updated."""
