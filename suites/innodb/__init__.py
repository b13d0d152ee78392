"""What MySQL and MariaDB share: both are servers of the same descent around InnoDB."""
