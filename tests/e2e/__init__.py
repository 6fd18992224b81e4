"""Tests with the real Cluster API."""
