"""``fivespot why``: explains one machine by the controller's own evaluation.

Reads only, with the rights of the user: objects are fetched one by one (:mod:`.live`), the controller's code
evaluates them (:mod:`.judge`), and the result is put in words (:mod:`.explain`, :mod:`.remedies`, :mod:`.render`).
"""
