"""Options of the tasks that are drawn."""

from dataclasses import dataclass

from statmech_attn.options import Count, Even, NotNegative, Options, Probability


@dataclass(frozen=True)
class Task(Options):
    """Hidden Markov chains: sizes and strengths; the defaults are the published ones.

    Attributes:
        length (token): length of a chain.
        features: entries of a token's features, an even number.
        flip_plus: probability that a hidden state of class + flips.
        flip_minus: probability that a hidden state of class - flips.
        parallel_noise: noise in the plane of the two states shown.
        perpendicular_noise: noise outside that plane.
        hardness: factor of all attention scores, x_s^T W x_t.
        bos_score: score of the first token.
        random_strength: factor of the scores of random heads, besides `hardness`.
    """

    length: Count = 30
    features: Even = 200
    flip_plus: Probability = 0.3
    flip_minus: Probability = 0.7
    parallel_noise: NotNegative = 1.0
    perpendicular_noise: NotNegative = 1.0
    hardness: float = 10.0
    bos_score: float = 1.5
    random_strength: float = 1.0

    @property
    def n_inputs(self) -> int:
        return self.features + self.length + 1

    @property
    def tokens(self) -> int:
        return self.length + 1
