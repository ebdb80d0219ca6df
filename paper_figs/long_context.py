"""Bifurcation diagram, Lyapunov spectrum and phases of a context of 32 tokens."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    scan = script.study("analysis/long_context.toml")
    script.save(plotting.bifurcation_diagram(scan), "long_context")


if __name__ == "__main__":
    main()
