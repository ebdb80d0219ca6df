"""Branches of cycles over the bifurcation diagram; curves of Neimark-Sacker points."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    first = script.study("analysis/continuation.toml")
    locking = script.study("analysis/continuation_locking.toml")
    scan = script.study("analysis/bifurcation_zoom.toml")
    zoom = (1.2665, 1.2745)  # the window of period 28
    diagram = plotting.continuation_diagram(first, locking, scan=scan, zoom=zoom)
    script.save(diagram, "continuation")
    script.save(plotting.critical_curves(first), "critical_curves")


if __name__ == "__main__":
    main()
