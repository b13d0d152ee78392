"""Commands in odd environments, under wrong clocks, and on histories of earlier schemas."""
