"""``fivespot timeline``: when a schedule is active over a period, worked out from a file, without a cluster.

Each schedule is decided by its own provider, from change to change; nothing here knows how any of them decides.
"""
