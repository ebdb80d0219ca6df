"""A file as the server holds it: opened in the background, with its view."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from statmech_attn.explore.result_files.cancellation import first_line
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.result_files.stored_study import Uncomputable
from statmech_attn.explore.views.line import Scan1D
from statmech_attn.explore.views.live import Live
from statmech_attn.explore.views.plane import Scan2D
from statmech_attn.explore.views.sheets import PictureView, sheet_of
from statmech_attn.explore.views.solving import Solving


COMPUTED = {  # by what the points of a kind of file are computed
    "bifurcation": Live,
    "diagram": Live,
    "order-parameter": Solving,
}


class ServedFile:
    """A file with what the page needs of it, made in the background.

    Attributes:
        state: "opening", "ready" or "failed", with an `error`.
        done: share that is done.
    """

    def __init__(self, path: Path):
        self.path, self.state, self.error, self.done = path, "opening", "", 0.0
        self.file: File | None = None
        self.view: Scan1D | Scan2D | PictureView | None = None
        self.live: Live | Solving | None = None
        self.why = ""  # nothing can be computed

    def prepare(self, allow_code: bool, warm: bool) -> None:
        """Open the file, and make what is slow to make."""
        self.state, self.error, self.done = "opening", "", 0.0
        try:
            if self.file is None:
                self.file = File(self.path)
            else:
                self.file.open()
            kinds = {"line": Scan1D, "plane": Scan2D}
            if self.file.view in kinds:
                self.view = kinds[self.file.view](self.file, self._tell)
            else:
                self.view = sheet_of(self.file)
            self._make_live(allow_code)
            self.state = "ready"
        except BaseException as error:  # whatever ends the thread, the page is told
            self.error, self.state = first_line(error), "failed"
            return
        if warm and self.live is not None:
            with suppress(BaseException):  # told where it is asked for
                self.live.warm()

    def described(self, open_beside: Sequence["ServedFile"]) -> dict[str, Any]:
        """What the page needs to know of the file."""
        answer = {"name": self.path.name, "state": self.state, "done": self.done}
        if self.state != "ready" or self.file is None:
            return answer | {"error": self.error}
        answer |= self.file.described() | {"why": self.why}
        if isinstance(self.view, PictureView):
            try:
                described = beside(self.view, open_beside).described()
            except Exception as error:  # of this file alone: the others are shown
                return answer | {"state": "failed", "error": first_line(error)}
            return answer | {"view": "sheet"} | described
        return answer | (self.view.described() if self.view else {})

    def require(self) -> File:
        """The file, which is ready and has not changed."""
        if self.state != "ready" or self.file is None:
            raise ValueError(f"{self.path.name}: {self.error or 'is being opened'}")
        self.file.require_there()
        return self.file

    def _tell(self, done: float) -> None:
        self.done = done

    def _make_live(self, allow_code: bool) -> None:
        assert self.file is not None
        kind = COMPUTED.get(self.file.kind)
        if kind is None or self.view is None:
            self.live = None
            self.why = "Points of scans and of theories of learning are computed here."
            return
        try:
            self.live, self.why = kind(self.file, allow_code=allow_code), ""
        except Uncomputable as error:
            self.live, self.why = None, str(error)


def beside(sheet: PictureView, others: Sequence[ServedFile]) -> PictureView:
    """A sheet with other files beside it."""
    return sheet.beside([x.file for x in others if x.file is not None])
