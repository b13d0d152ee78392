"""The question of a bisect, its rules, and its possible answers."""
