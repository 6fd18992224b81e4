"""A controller runtime for asyncio, and controllers that give and take Cluster API machines on a schedule."""

__version__ = "0.1.0"

__all__ = ["__version__"]
