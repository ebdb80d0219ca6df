"""One finite network and an average over many, against mean field and linear noise."""

from script import Script

from statmech_attn import comparison, plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    theory = script.study("analysis/finite_size_theory.toml")
    simulation = script.study("simulations/finite_size.toml")
    script.save(plotting.finite_size(simulation, theory), "finite_size")
    agreement = comparison.compare(theory, simulation)
    script.save(plotting.agreement(agreement), "finite_size_agreement")


if __name__ == "__main__":
    main()
