"""Running averages of the leading Lyapunov exponents at six values of beta."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    script.study("analysis/trajectories.toml")
    averages = script.analysis("analysis/running_lyapunov.py", of="trajectories")
    script.save(plotting.figure(averages, "running_lyapunov"), "running_lyapunov")


if __name__ == "__main__":
    main()
