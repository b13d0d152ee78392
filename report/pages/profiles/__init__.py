"""Tables of where the time of a query went: functions of the server, and what clients waited for."""
