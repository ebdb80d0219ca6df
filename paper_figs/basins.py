"""Basin fractions and lifetimes along beta, and the hysteresis of two sweeps."""

from statmech_attn import plotting, studies
from statmech_attn.cli import Script


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    found = script.study("analysis/basins.toml")
    script.save(plotting.basin_fractions(found), "basin_fractions")
    long = script.study("analysis/lifetimes.toml")
    script.save(plotting.lifetimes(long), "lifetimes")
    sweeps = (script.study(f"analysis/sweep_{way}.toml") for way in ("up", "down"))
    script.save(plotting.hysteresis(studies.compare_sweeps(*sweeps)), "hysteresis")


if __name__ == "__main__":
    main()
