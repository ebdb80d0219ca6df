"""By what f, its evidence and its heads are estimated: the words and look of each.

Figures and the page of the explorer read these tables.  A colour is a number in a
palette, of which figures and page have one each (`plotting.style.PALETTE`, and
`LINES` in page/colours.js).
"""

from typing import NamedTuple


EXACT_LAW = "order-parameter"  # the method of sampling that samples no weights
EXACT = "exact"  # name of the estimate by it


class Estimate(NamedTuple):
    """Words and look of an estimate, in legends and figures.

    `words` has formulas between dollar signs, `colour` is a number in a palette,
    `marker` one of matplotlib for values with bars (a line has none), and `dashed` is
    for the page.
    """

    words: str
    colour: int
    marker: str = ""
    dashed: bool = False

    @property
    def plain(self) -> str:
        """The words without marks of formulas."""
        return self.words.replace("$", "")


ESTIMATES = {
    "saddle": Estimate("saddle point", 0),
    "corrected": Estimate("saddle point + $1/N$", 1, dashed=True),
    EXACT: Estimate("exact law", 2, "o"),
    "weights": Estimate("weights (NUTS)", 3, "s"),
    "langevin": Estimate("weights (Langevin)", 4, "^"),
    "gp": Estimate("GP limit", 5, dashed=True),
}
OTHER = Estimate("weights ({})", 6, "D")  # by a sampler of another distribution
SCORES = {  # of heads, and orders in which they are pruned
    "saddle": Estimate("saddle point", 0, "o"),
    "exact-law": Estimate("exact law", 2, "s", dashed=True),
    "trained": Estimate("trained network", 3, "^"),
    "magnitude": Estimate("magnitude", 4, "v", dashed=True),
    "random": Estimate("random", 5),
}


def estimate(name: str) -> Estimate:
    """Words and look of an estimate, by its name in a file."""
    return ESTIMATES.get(name, OTHER._replace(words=OTHER.words.format(name)))


def of_method(method: str) -> str:
    """Name of what a method of sampling of a posterior study estimates."""
    return EXACT if method == EXACT_LAW else method
