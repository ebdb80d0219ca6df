"""Sessions in Python: JAX set up, a study run, and its result drawn, told and saved."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.interactive.accessor import (
        Accessor as Accessor,
        Pictures as Pictures,
    )
    from statmech_attn.interactive.session import run as run, setup as setup


lazy.attach(__name__, checks=False)
