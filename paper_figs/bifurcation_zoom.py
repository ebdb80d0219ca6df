"""Bifurcation diagram, Lyapunov spectrum and phases for beta in [1.24, 1.28]."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    scan = script.study("analysis/bifurcation_zoom.toml")
    script.save(plotting.bifurcation_diagram(scan), "bifurcation_zoom")


if __name__ == "__main__":
    main()
