"""Chaos indicators of the network, and time series of finite networks, by nolds."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    measured = script.analysis("analysis/chaos_indicators.py")
    script.save(plotting.figure(measured, "chaos_indicators"), "chaos_indicators")
    script.save(plotting.figure(measured, "finite_series"), "finite_series")


if __name__ == "__main__":
    main()
