"""Where chunks are computed; the numbers do not depend on it."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.scan.engines import distributed, local
    from statmech_attn.scan.engines.engine import Engine


lazy.attach(__name__)
