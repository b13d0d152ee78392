"""Copies of loaded data that outlive their session, so that large data are loaded once per version."""
