"""The command line and the nightly service: sessions, bisects, nights, checks of the machine."""
