"""``fivespot timeline``: the active times of a schedule in a period, computed from a file, without a cluster.

Each schedule is decided by its own provider, from change to change; nothing here depends on the kind.
"""
