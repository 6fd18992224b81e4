"""Tools for tests of controllers and providers."""
