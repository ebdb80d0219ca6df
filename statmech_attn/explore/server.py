"""The server behind the page: what it answers.

It is bound to the loopback address, and `guard` says whom it answers.  What the page
sends is checked by the models of `requests`.
"""

import logging
import secrets
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from statmech_attn import refusals
from statmech_attn.explore import overlays, page, pictures, requests
from statmech_attn.explore.cancellation import Cancelled, first_line
from statmech_attn.explore.files import Gone
from statmech_attn.explore.guard import Guard, HOST, refused
from statmech_attn.explore.jobs import Job
from statmech_attn.explore.line import Line
from statmech_attn.explore.live import Live
from statmech_attn.explore.plane import Plane
from statmech_attn.explore.served_file import beside, Shown
from statmech_attn.explore.sheets import Sheet
from statmech_attn.explore.solving import Solving


LOG = logging.getLogger(__name__)
JOBS = 16  # that are remembered
PATIENCE = 1.0  # seconds for what is computed or opened to end with the server


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
        self._opening: list[threading.Thread] = []
        self.port = 0
        self._allow_code, self._warm = allow_code, warm
        self._lock = threading.Lock()
        routes = [
            Route("/", self._page),
            Route("/static/{name}", self._static),
            *(
                Route(f"/api/{name}", self._answer(function, model), methods=["POST"])
                for name, function, model in (
                    ("files", self._files, requests.Nothing),
                    ("reopen", self._reopen, requests.Asked),
                    ("density", self._density, requests.Window),
                    ("strips", self._strips, requests.Strip),
                    ("map", self._map, requests.Map),
                    ("point", self._point, requests.At),
                    ("orbit", self._orbit, requests.At),
                    ("verdict", self._verdict, requests.At),
                    ("running", self._running, requests.At),
                    ("study", self._study, requests.Part),
                    ("run", self._run, requests.Part),
                    ("job", self._job, requests.Since),
                    ("cancel", self._cancel, requests.Since),
                    ("picture", self._picture, requests.Picture),
                    ("script", self._script, requests.Picture),
                    ("overlays", self._overlays, requests.Asked),
                    ("panels", self._panels, requests.Sheet),
                    ("solved", self._solved, requests.Solved),
                )
            ),
        ]
        self.app: ASGIApp = Guard(
            Starlette(routes=routes), self.token, lambda: self.port, framed=framed
        )

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
        deadline = time.monotonic() + PATIENCE
        left = lambda: max(deadline - time.monotonic(), 0)
        for job in self.jobs.values():
            job.wait(left())
        for opening in self._opening:
            opening.join(left())
        for shown in self.shown:
            if shown.live is not None:
                shown.live.close()
            if shown.file is not None:
                shown.file.close()

    def _open(self, shown: Shown) -> None:
        shown.state = "opening"
        arguments = self._allow_code, self._warm
        thread = threading.Thread(target=shown.prepare, args=arguments, daemon=True)
        thread.start()
        self._opening.append(thread)

    def _answer(self, function, model: type[BaseModel]):
        """An end point: what the page sends is checked, errors are a line each."""

        async def answer(request: Request) -> Response:
            try:
                asked = model.model_validate_json(await request.body() or "{}")
                return await run_in_threadpool(function, asked)
            except ValidationError as error:
                first = error.errors()[0]
                path = ".".join(map(str, first["loc"]))
                return refused(400, f"{path}: {refusals.words(first)}.")
            except Gone as error:
                return refused(410, str(error))
            except Cancelled:
                return refused(409, "Another point has been asked for.")
            except (ValueError, OSError, MemoryError) as error:
                return refused(400, first_line(error))
            except Exception as error:
                LOG.exception("an error of the explorer")
                return refused(
                    500, f"This is an error of statmech-attn: {type(error).__name__}."
                )

        return answer

    async def _page(self, request: Request) -> Response:
        return Response(page.document(), media_type="text/html")

    async def _static(self, request: Request) -> Response:
        found = page.static(request.path_params["name"])
        if found is None:
            return refused(404, "There is no such file.")
        return Response(found[0], media_type=found[1])

    def _files(self, asked: requests.Nothing) -> Response:
        files = [
            shown.described(self._ready(but=number))
            for number, shown in enumerate(self.shown)
        ]
        for shown, told in zip(self.shown, files, strict=True):
            if shown.state == "ready" and shown.file is not None:
                try:
                    shown.file.require_there()
                except Gone as error:
                    told["gone"] = str(error)
        return _json({"files": files})

    def _reopen(self, asked: requests.Asked) -> Response:
        self._open(self._chosen(asked))
        return _json({})

    def _density(self, asked: requests.Window) -> Response:
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

    def _strips(self, asked: requests.Strip) -> Response:
        if not asked.low < asked.high:
            raise ValueError("low must be below high.")
        return _binary(self._line(asked).strips(asked.low, asked.high, asked.columns))

    def _map(self, asked: requests.Map) -> Response:
        view = self._view(asked)
        if not isinstance(view, Plane):
            raise ValueError("This file is no scan of two parameters.")
        x, y = (asked.left, asked.right), (asked.bottom, asked.top)
        if not (x[0] < x[1] and y[0] < y[1]):
            raise ValueError("left must be below right, and bottom below top.")
        return _binary(view.picture(asked.variable, x, y, asked.columns, asked.rows))

    def _point(self, asked: requests.At) -> Response:
        view = self._view(asked)
        if isinstance(view, Sheet):
            raise ValueError("This file is no scan.")
        self._require_names(asked)
        return _json(view.point(asked.values))

    def _orbit(self, asked: requests.At) -> Response:
        return _json(self._computing(asked).orbit(asked.values, asked.page))

    def _verdict(self, asked: requests.At) -> Response:
        return _json(self._computing(asked).verdict(asked.values, asked.page))

    def _running(self, asked: requests.At) -> Response:
        return _json(self._computing(asked).running(asked.values, asked.page))

    def _study(self, asked: requests.Part) -> Response:
        from statmech_attn.storage import toml

        live = self._live(asked)
        tree = live.tree_of(self._ranges(asked, live))
        live.checked(tree)
        return _json({"study": toml.dumps(tree)})

    def _run(self, asked: requests.Part) -> Response:
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

    def _job(self, asked: requests.Since) -> Response:
        return _json(self._of_number(asked).told(asked.since))

    def _cancel(self, asked: requests.Since) -> Response:
        job = self._of_number(asked)
        job.cancel()
        return _json(job.told(asked.since))

    def _picture(self, asked: requests.Picture) -> Response:
        file = self._chosen(asked).require()
        body = pictures.picture(file, asked.name, asked.form, _limits(asked))
        return Response(body, media_type=pictures.FORMS[asked.form])

    def _script(self, asked: requests.Picture) -> Response:
        file = self._chosen(asked).require()
        text = pictures.script(file, asked.name, asked.form, _limits(asked))
        return _json({"script": text})

    def _overlays(self, asked: requests.Asked) -> Response:
        view = self._view(asked)
        if isinstance(view, Sheet):
            raise ValueError("This file is no scan.")
        others = self._ready(but=asked.file)
        return _json({"overlays": overlays.over(view.file, others)})

    def _panels(self, asked: requests.Sheet) -> Response:
        return _json({"panels": self._sheet(asked).panels(asked.chosen)})

    def _solved(self, asked: requests.Solved) -> Response:
        sheet, solving = self._sheet(asked), self._chosen(asked).live
        if not isinstance(solving, Solving):
            raise ValueError(self._chosen(asked).why)
        point = solving.solved(asked.values, asked.page)
        return _json({"panels": sheet.panels(asked.chosen, point)})

    def _ready(self, but: int) -> list[Shown]:
        """The other files that have been opened."""
        others = [shown for i, shown in enumerate(self.shown) if i != but]
        return [shown for shown in others if shown.state == "ready"]

    def _chosen(self, asked: requests.Asked) -> Shown:
        if asked.file >= len(self.shown):
            raise ValueError(f"file should be below {len(self.shown)}.")
        return self.shown[asked.file]

    def _view(self, asked: requests.Asked) -> Line | Plane | Sheet:
        shown = self._chosen(asked)
        shown.require()
        if shown.view is None:
            raise ValueError("This file is no scan.")
        return shown.view

    def _sheet(self, asked: requests.Asked) -> Sheet:
        view = self._view(asked)
        if not isinstance(view, Sheet):
            raise ValueError("This file has no panels.")
        return beside(view, self._ready(but=asked.file))

    def _line(self, asked: requests.Asked) -> Line:
        view = self._view(asked)
        if not isinstance(view, Line):
            raise ValueError("This file is no scan of one parameter.")
        return view

    def _live(self, asked: requests.Asked) -> Live:
        shown = self._chosen(asked)
        shown.require()
        if not isinstance(shown.live, Live):
            raise ValueError(shown.why or "This file is no scan.")
        return shown.live

    def _computing(self, asked: requests.At) -> Live:
        live = self._live(asked)
        self._require_names(asked)
        return live

    def _require_names(self, asked: requests.At) -> None:
        names = self._chosen(asked).require().axes
        if set(asked.values) != set(names):
            raise ValueError(f"values should be of {' and '.join(names)}.")

    def _ranges(self, asked: requests.Part, live: Live) -> dict[str, Any]:
        if set(asked.ranges) != set(live.names):
            raise ValueError(f"ranges should be of {' and '.join(live.names)}.")
        return {name: asked.ranges[name] for name in live.names}

    def _of_number(self, asked: requests.Since) -> Job:
        if asked.number not in self.jobs:
            raise ValueError("There is no such run.")
        return self.jobs[asked.number]


def _limits(asked: requests.Picture) -> pictures.Limits:
    return pictures.Limits(asked.low, asked.high, asked.bottom, asked.top)


def _json(content: Any) -> Response:
    return JSONResponse(content)


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
