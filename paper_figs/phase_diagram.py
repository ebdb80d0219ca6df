"""Phases and bifurcations in the plane of beta and gamma."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    scan = script.study("analysis/phase_diagram.toml")
    curves = script.study("analysis/phase_boundary.toml")
    script.save(plotting.phase_diagram(scan, curves), "phase_diagram")


if __name__ == "__main__":
    main()
