"""Hidden-Markov task, four paths: accuracy, order parameters, alignment and kernels."""

from statmech_attn import plotting
from statmech_attn.plotting.scripts import Script


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    theory = script.study("analysis/hidden_markov.toml")
    samples = [
        script.study("simulations/hidden_markov_exact.toml"),
        script.study("simulations/hidden_markov_weights.toml"),
    ]
    accuracy = plotting.accuracy_against_width(theory, samples)
    script.save(accuracy, "hidden_markov_accuracy")
    matrices = plotting.order_parameter_matrices(theory, widths=(10, 100, 1000))
    script.save(matrices, "hidden_markov_order_parameters")
    script.save(plotting.alignment(theory), "hidden_markov_alignment")
    script.save(plotting.path_kernels(theory), "hidden_markov_kernels")


if __name__ == "__main__":
    main()
