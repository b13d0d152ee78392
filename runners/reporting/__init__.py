"""What the report site takes from the service: bisects with their posteriors, flame graphs."""
