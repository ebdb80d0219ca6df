"""What each attention head is worth, for heads and data of one's own in NumPy arrays.

python analysis/own_heads.py              # made data: only head 2 knows the task
python analysis/own_heads.py FILE.npz     # W_Q, W_K (layer, head, key, feature),
                                          # x (example, feature, token), Y (example)
"""

import sys

import numpy as np

import statmech_attn
from statmech_attn import bpkr


WIDTH, TEMPERATURE = 20, 0.1  # of the network that learns with these heads


def main(arguments: list[str] | None = None) -> None:
    statmech_attn.setup()
    files = sys.argv[1:] if arguments is None else arguments
    data = np.load(files[0]) if files else recalled_labels()
    heads = bpkr.heads_from_queries(list(data["W_Q"]), list(data["W_K"]))
    xi = bpkr.attentioned_inputs(data["x"], heads, readout="last")
    problem = bpkr.Problem(
        xi, data["Y"], heads=heads, width=WIDTH, temperature=TEMPERATURE
    )
    solution = problem.solve()
    print(f"saddle point: {solution.reason}")
    for layer, scores in enumerate(solution.head_scores(), 1):
        for head, score in enumerate(scores, 1):
            print(f"layer {layer}, head {head}: score {score:.3f}")


def recalled_labels() -> dict[str, np.ndarray]:
    """One token has the address of the last one, and the label in its last feature."""
    rng = np.random.default_rng(1)
    examples, features, tokens, n_heads = 100, 12, 6, 4
    x = rng.choice([-1.0, 1.0], (examples, features, tokens))
    place = rng.integers(tokens - 1, size=examples)
    each = np.arange(examples)
    x[:, -1, -1] = 0.0
    x[each, :-1, -1] = x[each, :-1, place]
    queries, keys = rng.standard_normal((2, 1, n_heads, features, features))
    address = np.diag([3.0] * (features - 1) + [0.0])
    queries[0, 1] = keys[0, 1] = address
    return {"W_Q": queries, "W_K": keys, "x": x, "Y": x[each, -1, place]}


if __name__ == "__main__":
    main()
