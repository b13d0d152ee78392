"""Changes of level over nights: detected, confirmed, kept and acknowledged."""
