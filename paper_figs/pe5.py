"""Attractors of five positional bits, followed up and down in beta."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    studies = ("pe5_continuation", "pe5_continuation_locking")
    cycles = [script.study(f"analysis/{name}.toml") for name in studies]
    for part in ("full", "torus", "locking"):
        name = f"pe5_{part}"
        sweeps = script.analysis(
            "analysis/pe5_sweeps.py", study=f"analysis/{name}.toml"
        )
        script.save(plotting.sweep_diagram(sweeps, cycles), name)


if __name__ == "__main__":
    main()
