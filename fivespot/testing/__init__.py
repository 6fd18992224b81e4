"""What helps to test controllers and providers, fivespot's own and other people's.

Each part is a package of its own.
"""
