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
from statmech_attn.explore.result_files.cancellation import Cancelled, first_line
from statmech_attn.explore.result_files.files import Gone
from statmech_attn.explore.serving import page, requests
from statmech_attn.explore.serving.guard import Guard, HOST, refused
from statmech_attn.explore.serving.jobs import Job
from statmech_attn.explore.views import overlays, pictures
from statmech_attn.explore.views.line import Scan1D
from statmech_attn.explore.views.live import Live
from statmech_attn.explore.views.plane import Scan2D
from statmech_attn.explore.views.served_file import beside, ServedFile
from statmech_attn.explore.views.sheets import PictureView
from statmech_attn.explore.views.solving import Solving


LOG = logging.getLogger(__name__)
JOBS = 16  # that are remembered
SECONDS_TO_STOP = 1.0  # seconds for what is computed or opened to end with the server


class Server:
    """The application, and everything that it holds.

    With `allow_code` code that studies of the files name may run; `framed`: notebooks
    on this computer may show the page in a cell; `warm`: what a click needs is compiled
    before.

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
        self.served = [ServedFile(path) for path in paths]
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
                    ("files", self._files, requests.Request),
                    ("reopen", self._reopen, requests.FileRequest),
                    ("density", self._density, requests.Window),
                    ("strips", self._strips, requests.Strip),
                    ("map", self._map, requests.Map),
                    ("point", self._point, requests.Point),
                    ("orbit", self._orbit, requests.Point),
                    ("verdict", self._verdict, requests.Point),
                    ("running", self._running, requests.Point),
                    ("study", self._study, requests.Part),
                    ("run", self._run, requests.Part),
                    ("job", self._job, requests.JobRequest),
                    ("cancel", self._cancel, requests.JobRequest),
                    ("picture", self._picture, requests.Picture),
                    ("script", self._script, requests.Picture),
                    ("overlays", self._overlays, requests.FileRequest),
                    ("figure", self._figure, requests.PictureRequest),
                    ("solved", self._solved, requests.Solved),
                )
            ),
        ]
        self.app: ASGIApp = Guard(
            Starlette(routes=routes), self.token, lambda: self.port, framed=framed
        )

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def prepare(self) -> None:
        """Open the files, in the background."""
        for served in self.served:
            self._open(served)

    def close(self) -> None:
        """End what is being computed, and close the files."""
        for job in self.jobs.values():
            job.cancel()
        deadline = time.monotonic() + SECONDS_TO_STOP
        seconds_left = lambda: max(deadline - time.monotonic(), 0)
        for job in self.jobs.values():
            job.wait(seconds_left())
        for opening in self._opening:
            opening.join(seconds_left())
        for served in self.served:
            if served.live is not None:
                served.live.close()
            if served.file is not None:
                served.file.close()

    def _open(self, served: ServedFile) -> None:
        served.state = "opening"
        arguments = self._allow_code, self._warm
        thread = threading.Thread(target=served.prepare, args=arguments, daemon=True)
        thread.start()
        self._opening.append(thread)

    def _answer(self, function, model: type[BaseModel]):
        """An end point: what the page sends is checked, errors are a line each."""

        async def answer(request: Request) -> Response:
            try:
                message = model.model_validate_json(await request.body() or "{}")
                return await run_in_threadpool(function, message)
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
        asset = page.static(request.path_params["name"])
        if asset is None:
            return refused(404, "There is no such file.")
        return Response(asset[0], media_type=asset[1])

    def _files(self, message: requests.Request) -> Response:
        files = [
            served.described(self._ready(but=number))
            for number, served in enumerate(self.served)
        ]
        for served, description in zip(self.served, files, strict=True):
            if served.state == "ready" and served.file is not None:
                try:
                    served.file.require_there()
                except Gone as error:
                    description["gone"] = str(error)
        return _json({"files": files})

    def _reopen(self, message: requests.FileRequest) -> Response:
        self._open(self._chosen(message))
        return _json({})

    def _density(self, message: requests.Window) -> Response:
        line = self._line(message)
        if not (message.low < message.high and message.bottom < message.top):
            raise ValueError("low must be below high, and bottom below top.")
        return _binary(
            line.density(
                message.low,
                message.high,
                message.bottom,
                message.top,
                message.columns,
                message.rows,
            )
        )

    def _strips(self, message: requests.Strip) -> Response:
        if not message.low < message.high:
            raise ValueError("low must be below high.")
        return _binary(
            self._line(message).strips(message.low, message.high, message.columns)
        )

    def _map(self, message: requests.Map) -> Response:
        view = self._view(message)
        if not isinstance(view, Scan2D):
            raise ValueError("This file is no scan of two parameters.")
        x, y = (message.left, message.right), (message.bottom, message.top)
        if not (x[0] < x[1] and y[0] < y[1]):
            raise ValueError("left must be below right, and bottom below top.")
        return _binary(
            view.picture(message.variable, x, y, message.columns, message.rows)
        )

    def _point(self, message: requests.Point) -> Response:
        view = self._view(message)
        if isinstance(view, PictureView):
            raise ValueError("This file is no scan.")
        self._require_names(message)
        return _json(view.point(message.values))

    def _orbit(self, message: requests.Point) -> Response:
        return _json(self._computing(message).orbit(message.values, message.page))

    def _verdict(self, message: requests.Point) -> Response:
        return _json(self._computing(message).verdict(message.values, message.page))

    def _running(self, message: requests.Point) -> Response:
        return _json(self._computing(message).running(message.values, message.page))

    def _study(self, message: requests.Part) -> Response:
        from statmech_attn.storage import toml

        live = self._live(message)
        tree = live.tree_of(self._ranges(message, live))
        live.checked(tree)
        return _json({"study": toml.dumps(tree)})

    def _run(self, message: requests.Part) -> Response:
        live = self._live(message)
        ranges = self._ranges(message, live)
        with self._lock:
            if any(job.state == "running" for job in self.jobs.values()):
                raise ValueError("A part is being computed already; cancel it first.")
            job = Job(live, ranges)
            self.jobs[job.number] = job
            while len(self.jobs) > JOBS:
                self.jobs.pop(next(iter(self.jobs)))
        return _json(job.progress(0))

    def _job(self, message: requests.JobRequest) -> Response:
        return _json(self._of_number(message).progress(message.since))

    def _cancel(self, message: requests.JobRequest) -> Response:
        job = self._of_number(message)
        job.cancel()
        return _json(job.progress(message.since))

    def _picture(self, message: requests.Picture) -> Response:
        file, form = self._chosen(message).require(), message.form
        if isinstance(self._chosen(message).view, PictureView):
            draw = lambda: self._sheet(message).figure(message.name, message.chosen)
            body = pictures.written(draw, form)
        else:
            body = pictures.picture(file, message.name, form, _limits(message))
        return Response(body, media_type=pictures.FORMS[message.form])

    def _script(self, message: requests.Picture) -> Response:
        file, form = self._chosen(message).require(), message.form
        if isinstance(self._chosen(message).view, PictureView):
            text = self._sheet(message).script(message.name, message.chosen, form)
        else:
            text = pictures.script(file, message.name, form, _limits(message))
        return _json({"script": text})

    def _overlays(self, message: requests.FileRequest) -> Response:
        view = self._view(message)
        if isinstance(view, PictureView):
            raise ValueError("This file is no scan.")
        others = self._ready(but=message.file)
        return _json({"overlays": overlays.over(view.file, others)})

    def _figure(self, message: requests.PictureRequest) -> Response:
        return _json(self._sheet(message).readable(message.name, message.chosen))

    def _solved(self, message: requests.Solved) -> Response:
        sheet, solving = self._sheet(message), self._chosen(message).live
        if not isinstance(solving, Solving):
            raise ValueError(self._chosen(message).why)
        point = solving.solved(message.values, message.page)
        return _json(sheet.readable(message.name, message.chosen, point))

    def _ready(self, but: int) -> list[ServedFile]:
        """The other files that have been opened."""
        other_files = [served for i, served in enumerate(self.served) if i != but]
        return [served for served in other_files if served.state == "ready"]

    def _chosen(self, message: requests.FileRequest) -> ServedFile:
        if message.file >= len(self.served):
            raise ValueError(f"file should be below {len(self.served)}.")
        return self.served[message.file]

    def _view(self, message: requests.FileRequest) -> Scan1D | Scan2D | PictureView:
        served = self._chosen(message)
        served.require()
        if served.view is None:
            raise ValueError("This file is no scan.")
        return served.view

    def _sheet(self, message: requests.FileRequest) -> PictureView:
        view = self._view(message)
        if not isinstance(view, PictureView):
            raise ValueError("This file has no figures.")
        return beside(view, self._ready(but=message.file))

    def _line(self, message: requests.FileRequest) -> Scan1D:
        view = self._view(message)
        if not isinstance(view, Scan1D):
            raise ValueError("This file is no scan of one parameter.")
        return view

    def _live(self, message: requests.FileRequest) -> Live:
        served = self._chosen(message)
        served.require()
        if not isinstance(served.live, Live):
            raise ValueError(served.why or "This file is no scan.")
        return served.live

    def _computing(self, message: requests.Point) -> Live:
        live = self._live(message)
        self._require_names(message)
        return live

    def _require_names(self, message: requests.Point) -> None:
        names = self._chosen(message).require().axes
        if set(message.values) != set(names):
            raise ValueError(f"values should be of {' and '.join(names)}.")

    def _ranges(self, message: requests.Part, live: Live) -> dict[str, Any]:
        if set(message.ranges) != set(live.names):
            raise ValueError(f"ranges should be of {' and '.join(live.names)}.")
        return {name: message.ranges[name] for name in live.names}

    def _of_number(self, message: requests.JobRequest) -> Job:
        if message.number not in self.jobs:
            raise ValueError("There is no such run.")
        return self.jobs[message.number]


def _limits(message: requests.Picture) -> pictures.Limits:
    return pictures.Limits(message.low, message.high, message.bottom, message.top)


def _json(content: Any) -> Response:
    return JSONResponse(content)


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
