"""Sessions in Python: JAX set up, a study run, and its result drawn, told and saved."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.interactive.accessor import Accessor, Pictures
    from statmech_attn.interactive.session import run, setup


__all__ = ["Accessor", "Pictures", "run", "setup"]
lazy.attach(__name__)
