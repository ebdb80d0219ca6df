"""Phases and bifurcations in the plane of beta and gamma."""

from statmech_attn import plotting
from statmech_attn.cli import Script


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    scan = script.study("analysis/phase_diagram.toml")
    curves = script.study("analysis/phase_boundary.toml")
    script.save(plotting.phase_diagram(scan, curves), "phase_diagram")


if __name__ == "__main__":
    main()
