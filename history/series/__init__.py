"""Series over nights: one value per night and metric, and what else changed between nights."""
