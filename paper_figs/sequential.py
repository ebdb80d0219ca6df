"""Phases and bifurcations in the plane of beta and of the share of redrawn spins."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    scan = script.study("analysis/sequential.toml")
    curves = script.study("analysis/sequential_boundary.toml")
    script.save(plotting.phase_diagram(scan, curves), "sequential")


if __name__ == "__main__":
    main()
