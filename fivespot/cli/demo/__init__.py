"""``fivespot demo``: the whole system in one process, on an accelerated clock, with a view of its objects.

:mod:`.sample` has the objects and the operator's actions, :mod:`.board` their current state, :mod:`.feed` and
:mod:`.views` show it, and :mod:`.session` runs all of it.
"""
