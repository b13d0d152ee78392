"""What a plan says about changes, applied to those in the history: owners and mutes."""
