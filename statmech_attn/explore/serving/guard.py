"""Who is answered: requests of the page itself, and no others.

Every path begins with a token that only its user has been told; `Host` and `Origin`
must be the server's own, so that no page of another site reads from it or writes to it,
also not through a name that leads to this computer.
"""

import hmac
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send


HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
LARGEST = 2**16  # bytes of what the page sends
NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:*"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {};"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through what comes from the page itself, and adds headers to answers.

    `token` begins every path; `port` gives that of the server once it is known;
    `framed`: notebooks on this computer may show the page in a cell.
    """

    def __init__(
        self, app: ASGIApp, token: str, port: Callable[[], int], *, framed: bool
    ):
        self._app, self._token, self._port = app, token, port
        policy = POLICY.format(NOTEBOOKS if framed else "'none'")
        self._headers = HEADERS | {"Content-Security-Policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None
        request = Request(scope)
        refusal = self._refusal(request)

        async def send_with_headers(message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in self._headers.items()
                ]
            await send(message)

        if refusal is not None:
            return await refusal(scope, receive, send_with_headers)
        prefix = f"/{self._token}"
        scope = {**scope, "path": scope["path"][len(prefix) :] or "/", "raw_path": None}
        return await self._app(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Why a request is not answered; None where it is."""
        hosts = [f"{name}:{self._port()}" for name in NAMES]
        if request.headers.getlist("host") not in [[name] for name in hosts]:
            return refused(421, "This is not the address of the explorer.")
        origins = request.headers.getlist("origin")
        if any(
            origin not in [f"http://{name}" for name in hosts] for origin in origins
        ):
            return refused(403, "Another site asks.")
        if request.method == "POST" and not origins:
            return refused(403, "Only the page of the explorer asks.")
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and (
            request.method != "GET"
            or request.headers.get("sec-fetch-dest") not in ("document", "iframe")
        ):
            return refused(403, "Another site asks.")
        first = request.scope["path"].removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(first.encode(), self._token.encode()):
            return refused(403, "The address lacks the token that was printed with it.")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST:
            return refused(413, "That is too much.")
        if "transfer-encoding" in request.headers:
            return refused(411, "A length is required.")
        return None


def refused(code: int, text: str) -> Response:
    """An answer that says why there is no other."""
    return JSONResponse({"error": text}, code)
