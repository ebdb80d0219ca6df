"""Spins with alpha N patterns against the theory: differences, and exponents in N.

python benchmarks/extensive_spins.py [FOLDER] [--sizes 1500 6000] [--samples 20]
    [--steps 4] [--only NAME ...]

For six choices of ensemble, context and gamma it simulates every N and solves the
theory, keeps the files in FOLDER, where a second call goes on, and prints the largest
difference in standard errors at the largest N and extrapolated in 1/N, what chance
allows, and exponents of the sample-to-sample spread (-1/2) and of the means (-1).
"""

import argparse
from pathlib import Path

import numpy as np

import statmech_attn
from statmech_attn import comparison, studies


ROOT = Path(__file__).resolve().parents[1]
PARTLY = {"ov": 0.6, "oq": 0.3, "ok": 0.1, "vq": 0.2, "vk": 0.4, "qk": 0.5}
SETS = {  # ensemble, C, alpha, beta, gamma
    "sequence, C = 1": ("cycle", 1, 0.2, np.inf, 0.0),
    "sequence, C = 4": ("cycle", 4, 0.25, 4.0, 20.0),
    "identical, C = 1": ("identical", 1, 0.1, 2.0, 0.0),
    "identical, C = 3": ("identical", 3, 0.1, 2.0, 5.0),
    "partly, C = 2": ("correlated", 2, 0.2, 1.5, 10.0),
    "independent, C = 4": ("independent", 4, 0.3, 1.5, 20.0),
}
FOLDER = Path("results") / "extensive_spins"
ERROR = 1e-3  # largest standard error of sampled theory


def settings(name: str, options: argparse.Namespace) -> list[str]:
    """What differs from the study of the repository."""
    ensemble, C, alpha, beta, gamma = SETS[name]
    pairs = PARTLY if ensemble == "correlated" else {}
    return [
        f"network.context={C}",
        f"ensemble.patterns={ensemble}",
        *(f"ensemble.{pair}={value}" for pair, value in pairs.items()),
        f"parameters.alpha={alpha}",
        f"parameters.beta={beta}",
        f"parameters.gamma={gamma}",
        "run.overlap=0.8",
        f"run.steps={options.steps}",
    ]


def compared(name: str, options: argparse.Namespace):
    """The comparison of one choice, computed unless its files are there."""
    stem = name.replace(", C = ", "_")
    given = settings(name, options)
    theory = studies.produce(
        ROOT / "analysis" / "extensive.toml",
        options.folder / f"{stem}_theory.h5",
        [*given, f"run.error={ERROR}"],
    )
    simulation = studies.produce(
        ROOT / "simulations" / "extensive_spins.toml",
        options.folder / f"{stem}_{options.samples}_spins.h5",
        [*given, f"run.n_spins={options.sizes}", f"run.samples={options.samples}"],
    )
    return comparison.compare(theory, simulation)


def with_error(agreement, name: str) -> str:
    """An exponent of the overlap with its error, and the mean over observables."""
    if name not in agreement or not np.isfinite(agreement[name]).any():
        return "-"
    value, error = (
        agreement[n].sel(observable="m_o_se").item() for n in (name, f"{name}_stderr")
    )
    return f"{value:.2f} ± {error:.2f} ({agreement[name].mean().item():.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1500, 6000])
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    statmech_attn.setup()
    print("set | numbers | max|z| by N | allowed | N → ∞ | allowed | spread | mean")
    for name in options.only:
        agreement = compared(name, options).squeeze()
        words = agreement.verdict.attrs["flag_meanings"].split()
        by_size = agreement.largest_z.max("observable").values
        limits = agreement.get("largest_limit_z", agreement.largest_z * np.nan)
        row = (
            name,
            int(agreement.comparisons),
            " ".join(f"{z:.2f}" for z in np.atleast_1d(by_size)),
            f"{agreement.threshold.item():.2f}",
            f"{limits.max().item():.2f}",
            f"{agreement.limit_threshold.item():.2f}",
            with_error(agreement, "spread_slope"),
            with_error(agreement, "bias_slope"),
            words[int(agreement.verdict)].replace("_", " "),
        )
        print(" | ".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()
