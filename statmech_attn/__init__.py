"""Statistical mechanics of attention networks.

Subpackages: `dmft` (1-bit self-attention at N -> infinity), `bpkr` (Bayesian learning
in deep attention), `tasks` (what it learns), `dynamics` (Lyapunov spectra and phases
of any map), `montecarlo` (finite-N checks), `training` (gradient descent), `statistics`
(values with their errors), `batches` (numbers computed many at once), `scan` (many
parameter points), `storage` (HDF5), `studies` (a study file in, a data set out),
`comparison`, `validation`, `plotting`, `explore` (a page of result files), `cli`,
`interactive` (`setup` and `run`), and `kinds`, the table of what a study can name.
Each is imported when it is first asked for.  Importing the package changes no global
setting; what needs double precision says so, and `setup()` switches it on.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn import (
        batches as batches,
        bpkr as bpkr,
        cli as cli,
        comparison as comparison,
        dmft as dmft,
        dynamics as dynamics,
        interactive as interactive,
        montecarlo as montecarlo,
        plotting as plotting,
        scan as scan,
        statistics as statistics,
        storage as storage,
        studies as studies,
        tasks as tasks,
        training as training,
        validation as validation,
    )
    from statmech_attn.explore import explore as explore
    from statmech_attn.interactive import run as run, setup as setup


__version__ = "0.1.0"

lazy.attach(__name__, checks=False)
