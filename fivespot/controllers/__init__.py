"""The controllers of fivespot. Each meets the others only through the API server."""
