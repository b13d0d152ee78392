"""Boxes that are alike share the tasks of the plan."""
