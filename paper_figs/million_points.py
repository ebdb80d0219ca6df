"""Phases and largest exponent at a million points of the plane of beta and gamma."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    plane = script.kept("analysis/million_points.toml")
    script.save(plotting.phase_diagram(plane), "million_points")


if __name__ == "__main__":
    main()
