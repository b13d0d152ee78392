"""The nightly service: its plan, the work of a night, confirmations, report, heartbeat and watch."""
