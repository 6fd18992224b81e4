"""Checks that take longer than ``./dev test`` may, and pages with their results (``./dev prove``)."""
