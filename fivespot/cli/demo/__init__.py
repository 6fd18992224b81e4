"""``fivespot demo``: the whole system in one process, with time that runs faster, and a view of what happens.

:mod:`.sample` has the objects and what is done to them, :mod:`.board` what is known of them now, :mod:`.views`
shows it, and :mod:`.session` puts all of it together.
"""
