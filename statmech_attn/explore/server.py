"""The server behind the page: what it answers, and whom.

It is bound to the loopback address. Every path begins with a token that only its user
has been told; `Host` and `Origin` must be its own, so that no page of another site
reads from it or writes to it, also not through a name that leads to this computer. The
page itself may load nothing from anywhere else (Content-Security-Policy).
"""

import hmac
import logging
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from statmech_attn import refusals
from statmech_attn.explore import page, pictures
from statmech_attn.explore.files import File, Gone
from statmech_attn.explore.jobs import Job
from statmech_attn.explore.line import Line
from statmech_attn.explore.live import Cancelled, Live, Uncomputable
from statmech_attn.explore.plane import Plane


LOG = logging.getLogger(__name__)
HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
LARGEST = 2**16  # bytes of what the page sends
JOBS = 16  # that are remembered
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
Number = Annotated[float, Field(allow_inf_nan=False)]
Pixels = Annotated[int, Field(ge=1, le=4096)]
Which = Annotated[int, Field(ge=0)]


class Nothing(BaseModel):
    """What the page asks for; anything else is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(Nothing):
    """Something of a file."""

    file: Which = 0


class Strip(Asked):
    """A part of a scan of one parameter."""

    low: Number
    high: Number
    columns: Pixels


class Window(Strip):
    """A window of its diagram."""

    bottom: Number
    top: Number
    rows: Pixels


class Map(Asked):
    """A window of a scan of two parameters."""

    variable: str
    left: Number
    right: Number
    bottom: Number
    top: Number
    columns: Pixels
    rows: Pixels


class At(Asked):
    """A point of a scan, and the page that asks for it."""

    values: dict[str, Number]
    page: Which = 0


class Part(Asked):
    """A part of a scan that is to be computed."""

    ranges: dict[str, Any]


class Since(Asked):
    """What is new of a background run."""

    number: Which
    since: Which = 0


class Picture(Asked):
    """A picture of a file, or of a part of it."""

    name: str = ""
    form: str = "png"
    low: Number | None = None
    high: Number | None = None
    bottom: Number | None = None
    top: Number | None = None


class Shown:
    """A file with what the page needs of it, made in the background.

    Attributes:
        state: "opening", "ready" or "failed", with an `error`.
        done: share that is done.
    """

    def __init__(self, path: Path):
        self.path, self.state, self.error, self.done = path, "opening", "", 0.0
        self.file: File | None = None
        self.view: Line | Plane | None = None
        self.live: Live | None = None
        self.why = ""  # nothing can be computed

    def prepare(self, allow_code: bool, warm: bool) -> None:
        """Open the file, and make what is slow to make."""
        self.state, self.error, self.done = "opening", "", 0.0
        try:
            if self.file is None:
                self.file = File(self.path)
            else:
                self.file.open()
            kinds = {"line": Line, "plane": Plane}
            if self.file.view in kinds:
                self.view = kinds[self.file.view](self.file, self._tell)
            self._make_live(allow_code)
            self.state = "ready"
        except (ValueError, OSError, MemoryError, KeyError) as error:
            self.error = _first_line(error)
            self.state = "failed"
        if warm and self.live is not None:
            with suppress(ValueError, RuntimeError):  # told where it is asked for
                self.live.warm()

    def described(self) -> dict[str, Any]:
        """What the page needs to know of the file."""
        told = {"name": self.path.name, "state": self.state, "done": self.done}
        if self.state != "ready" or self.file is None:
            return told | {"error": self.error}
        told |= self.file.described() | {"why": self.why}
        return told | (self.view.described() if self.view else {})

    def require(self) -> File:
        """The file, which is ready and has not changed.

        Raises:
            Gone: it has been replaced or removed.
            ValueError: it is not ready.
        """
        if self.state != "ready" or self.file is None:
            raise ValueError(f"{self.path.name}: {self.error or 'is being opened'}")
        self.file.require_there()
        return self.file

    def _tell(self, done: float) -> None:
        self.done = done

    def _make_live(self, allow_code: bool) -> None:
        assert self.file is not None
        try:
            self.live, self.why = Live(self.file, allow_code=allow_code), ""
        except Uncomputable as error:
            self.live, self.why = None, str(error)


class Server:
    """The application, and everything that it holds.

    Args:
        paths: of the files.
        allow_code: whether code that studies of the files name may run.
        framed: whether notebooks on this computer may show the page in a cell.
        warm: compile what a click needs before anyone clicks.

    Attributes:
        token: that every path begins with.
        app: for an ASGI server.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        allow_code: bool = False,
        framed: bool = False,
        warm: bool = False,
    ):
        self.token = secrets.token_urlsafe(24)
        self.shown = [Shown(path) for path in paths]
        self.jobs: dict[int, Job] = {}
        self.port = 0
        self._allow_code, self._warm = allow_code, warm
        self._lock = threading.Lock()
        routes = [
            Route("/", self._page),
            Route("/static/{name}", self._static),
            *(
                Route(f"/api/{name}", self._answer(function, model), methods=["POST"])
                for name, function, model in (
                    ("files", self._files, Nothing),
                    ("reopen", self._reopen, Asked),
                    ("density", self._density, Window),
                    ("strips", self._strips, Strip),
                    ("map", self._map, Map),
                    ("point", self._point, At),
                    ("orbit", self._orbit, At),
                    ("verdict", self._verdict, At),
                    ("running", self._running, At),
                    ("study", self._study, Part),
                    ("run", self._run, Part),
                    ("job", self._job, Since),
                    ("cancel", self._cancel, Since),
                    ("picture", self._picture, Picture),
                    ("script", self._script, Picture),
                )
            ),
        ]
        application = Starlette(routes=routes)
        policy = POLICY.format(NOTEBOOKS if framed else "'none'")
        self.app: ASGIApp = _Guard(application, self, policy)

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def prepare(self) -> None:
        """Open the files, in the background."""
        for shown in self.shown:
            self._open(shown)

    def close(self) -> None:
        """End what is being computed, and close the files."""
        for job in self.jobs.values():
            job.cancel()
        for job in self.jobs.values():
            job.wait(10)
        for shown in self.shown:
            if shown.live is not None:
                shown.live.close()
            if shown.file is not None:
                shown.file.close()

    def _open(self, shown: Shown) -> None:
        shown.state = "opening"
        arguments = self._allow_code, self._warm
        threading.Thread(target=shown.prepare, args=arguments, daemon=True).start()

    def _answer(self, function, model: type[BaseModel]):
        """An end point: what the page sends is checked, errors are a line each."""

        async def answer(request: Request) -> Response:
            try:
                asked = model.model_validate_json(await request.body() or "{}")
                return await run_in_threadpool(function, asked)
            except ValidationError as error:
                first = error.errors()[0]
                path = ".".join(map(str, first["loc"]))
                return _refused(400, f"{path}: {refusals.words(first)}.")
            except Gone as error:
                return _refused(410, str(error))
            except Cancelled:
                return _refused(409, "Another point has been asked for.")
            except (ValueError, OSError, MemoryError) as error:
                return _refused(400, _first_line(error))
            except Exception as error:
                LOG.exception("an error of the explorer")
                return _refused(
                    500, f"This is an error of statmech-attn: {type(error).__name__}."
                )

        return answer

    async def _page(self, request: Request) -> Response:
        return Response(page.document(), media_type="text/html")

    async def _static(self, request: Request) -> Response:
        found = page.static(request.path_params["name"])
        if found is None:
            return _refused(404, "There is no such file.")
        return Response(found[0], media_type=found[1])

    def _files(self, asked: Nothing) -> Response:
        files = [shown.described() for shown in self.shown]
        for shown, told in zip(self.shown, files, strict=True):
            if shown.state == "ready" and shown.file is not None:
                try:
                    shown.file.require_there()
                except Gone as error:
                    told["gone"] = str(error)
        return _json({"files": files})

    def _reopen(self, asked: Asked) -> Response:
        self._open(self._chosen(asked))
        return _json({})

    def _density(self, asked: Window) -> Response:
        line = self._line(asked)
        if not (asked.low < asked.high and asked.bottom < asked.top):
            raise ValueError("low must be below high, and bottom below top.")
        return _binary(
            line.density(
                asked.low,
                asked.high,
                asked.bottom,
                asked.top,
                asked.columns,
                asked.rows,
            )
        )

    def _strips(self, asked: Strip) -> Response:
        if not asked.low < asked.high:
            raise ValueError("low must be below high.")
        return _binary(self._line(asked).strips(asked.low, asked.high, asked.columns))

    def _map(self, asked: Map) -> Response:
        view = self._view(asked)
        if not isinstance(view, Plane):
            raise ValueError("This file is no scan of two parameters.")
        x, y = (asked.left, asked.right), (asked.bottom, asked.top)
        if not (x[0] < x[1] and y[0] < y[1]):
            raise ValueError("left must be below right, and bottom below top.")
        return _binary(view.picture(asked.variable, x, y, asked.columns, asked.rows))

    def _point(self, asked: At) -> Response:
        view = self._view(asked)
        self._require_names(asked)
        return _json(view.point(asked.values))

    def _orbit(self, asked: At) -> Response:
        return _json(self._computing(asked).orbit(asked.values, asked.page))

    def _verdict(self, asked: At) -> Response:
        return _json(self._computing(asked).verdict(asked.values, asked.page))

    def _running(self, asked: At) -> Response:
        return _json(self._computing(asked).running(asked.values, asked.page))

    def _study(self, asked: Part) -> Response:
        from statmech_attn.storage import toml

        live = self._live(asked)
        tree = live.tree_of(self._ranges(asked, live))
        live.checked(tree)
        return _json({"study": toml.dumps(tree)})

    def _run(self, asked: Part) -> Response:
        live = self._live(asked)
        ranges = self._ranges(asked, live)
        with self._lock:
            if any(job.state == "running" for job in self.jobs.values()):
                raise ValueError("A part is being computed already; cancel it first.")
            job = Job(live, ranges)
            self.jobs[job.number] = job
            while len(self.jobs) > JOBS:
                self.jobs.pop(next(iter(self.jobs)))
        return _json(job.told(0))

    def _job(self, asked: Since) -> Response:
        return _json(self._of_number(asked).told(asked.since))

    def _cancel(self, asked: Since) -> Response:
        job = self._of_number(asked)
        job.cancel()
        return _json(job.told(asked.since))

    def _picture(self, asked: Picture) -> Response:
        file = self._chosen(asked).require()
        body = pictures.picture(file, asked.name, asked.form, _limits(asked))
        return Response(body, media_type=pictures.FORMS[asked.form])

    def _script(self, asked: Picture) -> Response:
        file = self._chosen(asked).require()
        text = pictures.script(file, asked.name, asked.form, _limits(asked))
        return _json({"script": text})

    def _chosen(self, asked: Asked) -> Shown:
        if asked.file >= len(self.shown):
            raise ValueError(f"file should be below {len(self.shown)}.")
        return self.shown[asked.file]

    def _view(self, asked: Asked) -> Line | Plane:
        shown = self._chosen(asked)
        shown.require()
        if shown.view is None:
            raise ValueError("This file is no scan.")
        return shown.view

    def _line(self, asked: Asked) -> Line:
        view = self._view(asked)
        if not isinstance(view, Line):
            raise ValueError("This file is no scan of one parameter.")
        return view

    def _live(self, asked: Asked) -> Live:
        shown = self._chosen(asked)
        shown.require()
        if shown.live is None:
            raise ValueError(shown.why)
        return shown.live

    def _computing(self, asked: At) -> Live:
        live = self._live(asked)
        self._require_names(asked)
        return live

    def _require_names(self, asked: At) -> None:
        names = self._chosen(asked).require().axes
        if set(asked.values) != set(names):
            raise ValueError(f"values should be of {' and '.join(names)}.")

    def _ranges(self, asked: Part, live: Live) -> dict[str, Any]:
        if set(asked.ranges) != set(live.names):
            raise ValueError(f"ranges should be of {' and '.join(live.names)}.")
        return {name: asked.ranges[name] for name in live.names}

    def _of_number(self, asked: Since) -> Job:
        if asked.number not in self.jobs:
            raise ValueError("There is no such run.")
        return self.jobs[asked.number]


class _Guard:
    """Lets through what comes from the page itself, and adds headers to answers."""

    def __init__(self, app: ASGIApp, server: Server, policy: str):
        self._app, self._server = app, server
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
        prefix = f"/{self._server.token}"
        scope = {**scope, "path": scope["path"][len(prefix) :] or "/", "raw_path": None}
        return await self._app(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Why a request is not answered; None where it is."""
        own = [f"{name}:{self._server.port}" for name in NAMES]
        if request.headers.getlist("host") not in [[name] for name in own]:
            return _refused(421, "This is not the address of the explorer.")
        origins = request.headers.getlist("origin")
        if any(origin not in [f"http://{name}" for name in own] for origin in origins):
            return _refused(403, "Another site asks.")
        if request.method == "POST" and not origins:
            return _refused(403, "Only the page of the explorer asks.")
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            if request.method != "GET" or request.headers.get("sec-fetch-dest") not in (
                "document",
                "iframe",
            ):
                return _refused(403, "Another site asks.")
        first = request.scope["path"].split("/")[1]
        if not hmac.compare_digest(first.encode(), self._server.token.encode()):
            return _refused(
                403, "The address lacks the token that was printed with it."
            )
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST:
            return _refused(413, "That is too much.")
        if "transfer-encoding" in request.headers:
            return _refused(411, "A length is required.")
        return None


def _limits(asked: Picture) -> pictures.Limits:
    return pictures.Limits(asked.low, asked.high, asked.bottom, asked.top)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _json(content: Any) -> Response:
    return JSONResponse(content)


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _refused(code: int, text: str) -> Response:
    return JSONResponse({"error": text}, code)
