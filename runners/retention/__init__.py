"""What is kept on the disk of a box: builds, copies of loaded data and logs, and what is deleted."""
