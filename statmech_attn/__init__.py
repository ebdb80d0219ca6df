"""Statistical mechanics of attention networks.

Subpackages: `dmft` (1-bit self-attention at N -> infinity), `bpkr` (Bayesian learning
in deep attention), `tasks` (what it learns), `dynamics` (Lyapunov spectra and phases
of any map), `montecarlo` (finite-N checks), `statistics` (values with their errors),
`batches` (numbers computed many at once), `scan` (many parameter points), `storage`
(HDF5), `plotting`, `cli`.  Importing the package changes no global setting; what needs
double precision says so.
"""

from statmech_attn import dmft, dynamics, montecarlo


__version__ = "0.1.0"

__all__ = ["dmft", "dynamics", "montecarlo"]
