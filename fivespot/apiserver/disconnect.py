"""What a front does to a client instead of answering it."""

from __future__ import annotations

__all__ = ["DisconnectedError"]


class DisconnectedError(Exception):
    """The connection ends here, without an answer or in the middle of one.

    Raised by a middleware or by a stream's ``read``; a front then drops the client's connection.

    :param refused: as if the connection had never been made, so that the client knows that nothing was done.
    """

    def __init__(self, *, refused: bool = False) -> None:
        super().__init__("connection refused" if refused else "connection reset by peer")
        self.refused = refused
