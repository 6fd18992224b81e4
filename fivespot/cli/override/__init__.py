"""``fivespot override``: decide by hand, for a limited time, what a schedule says.

:mod:`.command` has the flags, :mod:`.schedule` reads schedules of any kind, :mod:`.effect` predicts what an override
does (pure), and :mod:`.entries` writes and removes entries of ``spec.overrides``.
"""
