"""From a regression to the commit: noisy binary search over the commits between good and bad."""
