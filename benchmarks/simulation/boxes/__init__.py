"""Simulated boxes whose series are judged together."""
