"""Options of the tasks that are drawn."""

from dataclasses import dataclass

from statmech_attn.options import Count, Even, NotNegative, Options, Probability, Seed


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


@dataclass(frozen=True)
class Setting(Options):
    """One-shot tasks: sizes; the defaults are the published ones.

    Attributes:
        image_size (pixel): edge of an image.
        patch (pixel): edge of a patch, of which a token is made.
        channels: identical copies of an image.
        symbol_seed: seed of the codes of positions and labels.
    """

    image_size: Count = 32
    patch: Count = 8
    channels: Count = 3
    symbol_seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        if self.image_size % self.patch:
            raise ValueError(
                f"patch must divide image_size; got {self.patch} and {self.image_size}."
            )
        if self.n_inputs % 2:
            raise ValueError(
                "patch^2 channels must be even, for sines and cosines of the "
                f"positions; got {self.n_inputs}."
            )

    @property
    def patches(self) -> int:
        return (self.image_size // self.patch) ** 2

    @property
    def tokens(self) -> int:
        return 3 * self.patches

    @property
    def n_inputs(self) -> int:
        return self.patch**2 * self.channels
