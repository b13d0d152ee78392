"""The cache of finished builds, and archives for copying builds between machines."""
