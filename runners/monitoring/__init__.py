"""What is known of the service on a box, and its views: lines for people, JSON, and metrics of Prometheus."""
