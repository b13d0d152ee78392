"""Boxes that fall silent, as others notice it: another box by the history, a workflow by GitHub's jobs."""
