"""Basin fractions and lifetimes along beta, and the hysteresis of two sweeps."""

from script import Script

from statmech_attn import dynamics, plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    attractors = script.study("analysis/basins.toml")
    script.save(plotting.figure(attractors, "basins"), "basin_fractions")
    long = script.study("analysis/lifetimes.toml")
    script.save(plotting.figure(long, "lifetimes"), "lifetimes")
    sweeps = (script.study(f"analysis/sweep_{way}.toml") for way in ("up", "down"))
    compared = dynamics.diagrams.compare_sweeps(*sweeps)
    script.save(plotting.hysteresis(compared), "hysteresis")


if __name__ == "__main__":
    main()
