"""``fivespot why``: the whole reasoning for one machine, by the controller's own observing and deciding.

Reads only, with the rights of whoever asks: objects are fetched one by one (:mod:`.live`), the controller's code judges
them (:mod:`.judge`), and what it says is put in words (:mod:`.explain`, :mod:`.remedies`, :mod:`.render`).
"""
