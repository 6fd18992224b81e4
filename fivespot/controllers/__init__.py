"""The controllers of fivespot. They interact only through the API server."""
