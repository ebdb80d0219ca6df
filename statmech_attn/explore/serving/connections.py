"""Connections that end when no whole request comes on them.

A connection on which nothing or half a request arrives holds a file of this process;
some hundreds of them would keep the page itself from being answered.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


SECONDS_FOR_REQUEST = 10.0  # seconds for a request to come whole
WAITING = 64  # connections that may wait for longer than SOON; of more, the oldest end
SOON = 1.0  # seconds: a request that was sent with its connection has come by then
MOST = 512  # connections that may wait at all
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


class Patient(H11Protocol):
    """HTTP/1.1 on one connection, ended when it waits too long for its request."""

    _end: asyncio.TimerHandle | None = None  # of the wait, while there is one

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        request = self.cycle
        if request is not None and not (request.more_body or request.response_complete):
            self._wait_no_longer()
        elif self._end is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Begin to wait for a whole request."""
        self._end = self.loop.call_later(SECONDS_FOR_REQUEST, self.transport.abort)
        self._end_oldest(MOST, 0.0)
        self.loop.call_later(SOON, self._end_oldest, WAITING, SOON)

    def _end_oldest(self, most: int, least: float) -> None:
        """Let `most` connections wait; tell others that have for `least` seconds."""
        waiting = [
            (connection._end.when() - SECONDS_FOR_REQUEST, connection)
            for connection in self.connections
            if isinstance(connection, Patient) and connection._end is not None
        ]
        waiting.sort(key=lambda pair: pair[0])
        for begun, oldest in waiting[: max(len(waiting) - most, 0)]:
            if begun <= self.loop.time() - least:
                oldest._wait_no_longer()
                oldest.transport.write(BUSY)
                oldest.transport.close()

    def _wait_no_longer(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
