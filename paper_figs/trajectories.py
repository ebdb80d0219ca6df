"""Trajectories, phase planes, spectra and autocorrelations at six values of beta.

Phases and periods in the titles are measured on the very orbits that are shown.
"""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    orbits = script.study("analysis/trajectories.toml")
    measured = script.analysis("analysis/running_lyapunov.py", of="trajectories")
    windows = plotting.trajectory_windows(orbits, phases=measured)
    script.save(windows, "trajectories")
    script.save(plotting.phase_planes(orbits, phases=measured), "phase_planes")
    script.save(plotting.spectra(orbits, phases=measured), "spectra")


if __name__ == "__main__":
    main()
