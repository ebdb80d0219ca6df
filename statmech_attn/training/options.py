"""Options of trainings."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, MultipleOf

from statmech_attn.options import Count, NotNegative, Options, Positive
from statmech_attn.training.results import RECORDS


@dataclass(frozen=True, kw_only=True)
class Descent(Options):
    """Numerical choices of a training with all examples.

    Attributes:
        optimiser: Adam, or plain gradient descent.
        learning_rate: learning rate of the optimiser.
        schedule: a constant learning rate, or one that ends at zero like a cosine.
        steps: number of steps at most; a multiple of `block`.
        block: steps between two writes to disk, a multiple of 10; a tenth of all when
            left out.
        tolerance: gradient norm at which a training has converged.
    """

    optimiser: Literal["adam", "gd"] = "adam"
    learning_rate: Positive
    schedule: Literal["constant", "cosine"] = "constant"
    steps: Count
    block: Count | None = None
    tolerance: Positive = 1e-6

    @property
    def block_size(self) -> int:
        """Steps of gradient descent in a block."""
        return self.block or self.steps // 10

    @property
    def recorded(self) -> range:
        """Steps at which the loss is recorded, the first at zero."""
        return range(0, self.steps + 1, self.block_size // RECORDS)

    def __post_init__(self):
        super().__post_init__()
        size = self.block_size
        if not size or size % RECORDS or self.steps % size:
            raise ValueError(
                f"steps must be a multiple of block, and block of {RECORDS}; got "
                f"{self.steps} and {size}."
            )


@dataclass(frozen=True, kw_only=True)
class Minibatches(Options):
    """Numerical choices of a training with minibatches.

    Attributes:
        learning_rate: learning rate of Adam.
        schedule: a constant learning rate, or one that ends at zero like a cosine.
        weight_decay: strength of the decay of weights.
        batch: tasks of a step.
        steps: number of steps at most.
        block: steps between two writes to disk, a multiple of 10.
        validation_batches: batches of validation tasks, the same at every record.
        patience: steps after which a network that is silent still is given up; at the
            end when left out.
        precision: precision of matrix products; "auto" is single on a CPU, mixed
            elsewhere.
    """

    learning_rate: Positive
    schedule: Literal["constant", "cosine"] = "constant"
    weight_decay: NotNegative = 5e-5
    batch: Count = 128
    steps: Count
    block: Annotated[int, Ge(RECORDS), MultipleOf(RECORDS)]
    validation_batches: Count = 16
    patience: Count | None = None
    precision: Literal["auto", "single", "mixed"] = "auto"

    @property
    def blocks(self) -> int:
        """Blocks of the run; the last one may be shorter."""
        return -(-self.steps // self.block)

    @property
    def recorded(self) -> list[int]:
        """Steps of the records, the first at zero, the last at the end."""
        return [*range(0, self.steps, self.block // RECORDS), self.steps]
