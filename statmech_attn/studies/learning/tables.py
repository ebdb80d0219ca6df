"""Tables of the studies of Bayesian learning."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    model_validator,
    Tag,
)

from statmech_attn.kinds import SAMPLERS
from statmech_attn.montecarlo import Sampling
from statmech_attn.options import (
    Count,
    either,
    Even,
    Fraction,
    Positive,
    Seed,
    WholeNumber,
)
from statmech_attn.studies.files import digests
from statmech_attn.studies.tables import (
    AnyTask,
    chosen,
    Number,
    of,
    Table,
    TaskTable,
    Values,
)
from statmech_attn.tasks import options
from statmech_attn.training import Descent


HeadName = Literal["previous-token", "uniform", "random"]
Readout = Annotated[
    Annotated[Literal["first", "last", "mean"], Tag("word")]
    | Annotated[int, Tag("count")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "count"),
]
Grid = Annotated[
    Number | Values,
    Discriminator(lambda value: "list" if isinstance(value, list) else "number"),
]


def _sampler(name: str) -> str:
    if name not in (names := SAMPLERS.names()):
        raise ValueError(f"should be {either(names)}")
    return name


Method = Annotated[
    str,
    AfterValidator(_sampler),
    Field(json_schema_extra=lambda schema: schema.update(enum=[*SAMPLERS.names()])),
]
PART = 10  # a block consists of so many parts, with a mean or a record each


class ExamplesTable(TaskTable, frozen=True):
    """A published setting, and how many chains are read, by what heads.

    Attributes:
        name: name of the task.
        preset: published setting.
        heads: names of the heads of every layer: previous-token, uniform, random.
        readout: token that is read: "first", "last" or its number, or their "mean".
        n_train: training examples, an even number.
        n_test: test examples, an even number.
    """

    name: Literal["hidden-markov"] = "hidden-markov"
    preset: Literal["four-paths", "two-paths"] = "four-paths"
    heads: Annotated[
        list[Annotated[list[HeadName], Field(min_length=1)]] | None, Field(min_length=1)
    ] = None
    readout: Readout | None = None
    n_train: Even | None = None
    n_test: Even | None = None


class HiddenMarkovTable(of(options.Task, optional=True), ExamplesTable, frozen=True):
    """[task]: a published setting; every other key replaces one of its values.

    Attributes:
        skip: factor b of the skip connections, or one for each layer, 0 for none.
    """

    skip: Grid = 0.0

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the preset, as keywords of `hidden_markov.preset`."""
        unchanged = {"name", "preset", "seed", "skip"}
        changed = self.model_dump(exclude_none=True, exclude=unchanged)
        renamed = {"heads": "layers"}
        return {renamed.get(name, name): value for name, value in changed.items()}


class ArraysTask(TaskTable, frozen=True):
    """[task] of one's own data: a file with inputs, labels, and heads or attention.

    Attributes:
        name: name of the task.
        file: npz or HDF5 file of arrays, beside the study.
        readout: token that is read: "first", "last" or its number, or their "mean".
        queries: whether queries are "columns" or "rows" of attention matrices.
        skip: factor b of the skip connections, or one for each layer, 0 for none.
        heads: heads that are kept, by name or as "layer.head"; all heads of a layer of
            which none is named; all when left out.
        classes: two numbers of classes that become labels 1 and -1; examples of other
            classes are left out.
    """

    name: Literal["arrays"]
    file: Annotated[str, Field(min_length=1, examples=["arrays.npz"])]
    readout: Readout = "last"
    queries: Literal["columns", "rows"] = "columns"
    skip: Grid = 0.0
    heads: Annotated[list[str], Field(min_length=1, examples=[["1.1"]])] | None = None
    classes: Annotated[list[int], Field(examples=[[1, 0]])] | None = None

    @model_validator(mode="after")
    def _two_classes(self):
        classes = self.classes
        if classes is not None and not len(classes) == len(set(classes)) == 2:
            raise ValueError(
                "classes must be two different numbers, such as [3, 8]; got "
                f"{classes[:4]}"
            )
        return self

    def files(self) -> list[Path]:
        return [Path(self.file)]

    def inputs(self) -> dict[str, str]:
        path = Path(self.file)
        return {path.name: digests.of_file(path)}

    def beside(self, folder: Path) -> Self:
        path = folder / os.path.expanduser(self.file)
        return self.model_copy(update={"file": os.path.abspath(path)})


class WidthsTable(Table, frozen=True):
    """[network]: widths and temperatures, every combination of them.

    Attributes:
        width: hidden width N, or several.
        temperature: temperature T of the posterior, or several.
        width_ratios: widths of the layers over N, the readout last; all 1 when left
            out.
        variances: prior variances of the weights, from input to readout; all 1 when
            left out.
    """

    width: Annotated[Grid, Field(examples=[[10, 100, 1000]])]
    temperature: Annotated[Grid, Field(examples=[0.01])]
    width_ratios: Annotated[list[Positive], Field(min_length=2)] | None = None
    variances: Annotated[list[Positive], Field(min_length=3)] | None = None

    @model_validator(mode="after")
    def _distinct(self):
        for name in ("width", "temperature"):
            values = listed(getattr(self, name))
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: values must be distinct")
        return self


class OrderParameterRun(Table, frozen=True):
    """[run] of saddle points; `predictors` keeps f of every test example.

    Attributes:
        corrections: whether corrections of order 1/N and the evidence are computed.
        kernels: whether kernels are kept.
        predictors: whether the predictor of every test example is kept.
    """

    corrections: bool = True
    kernels: bool = False
    predictors: bool = True


class PosteriorRun(Table, frozen=True):
    """[run] of sampling; draws and warm-up are counted for each chain.

    Without `warmup` the exact law takes what it needs, weights take 500 steps.

    Attributes:
        method: what is sampled: "order-parameter" is the exact law of the order
            parameters, "weights" the weights by NUTS, others the weights by the sampler
            of this name.
        seed: seed of the Markov chains.
        draws: samples that each chain draws.
        warmup: steps of each chain before its first sample.
        chains: independent Markov chains.
        stored: samples of the order parameters that are stored for each chain; all
            draws where there are fewer than this default.
        block: samples of the weights between two writes to disk.
        step_size: step of a sampler that does not adapt it; from the stiffness at the
            start when left out.
        evidence: whether the evidence is computed from the exact law.
    """

    method: Method = "order-parameter"
    seed: Seed = 0
    draws: Annotated[int, Field(ge=4)] = 1000
    warmup: Count | None = None
    chains: Count = 4
    stored: WholeNumber = 200
    block: Count | None = None
    step_size: Positive | None = None
    evidence: bool = False

    @property
    def sampling(self) -> Sampling:
        """What samples a posterior."""
        options: dict[str, Any] = self.model_dump(exclude={"seed", "stored"})
        options["block"] = self.block_size
        return Sampling(**options)

    @property
    def block_size(self) -> int:
        """Draws between two writes to disk: about a hundred where none are given."""
        if self.block is not None:
            return self.block
        fitting = [n for n in range(PART, 101, PART) if self.draws % n == 0]
        return max(fitting, default=PART)

    @model_validator(mode="before")
    @classmethod
    def _no_more_stored_than_drawn(cls, table: Any) -> Any:
        draws = table.get("draws") if isinstance(table, dict) else None
        most = cls.model_fields["stored"].default
        if isinstance(draws, int) and draws < most and "stored" not in table:
            return table | {"stored": draws}
        return table

    @model_validator(mode="after")
    def _keys_of_the_method(self):
        (sampler,) = SAMPLERS.named(self.method)
        if self.step_size is not None and sampler.adapts:
            raise ValueError(f'step_size has no use with method = "{self.method}"')
        if self.evidence and self.method != "order-parameter":
            raise ValueError('evidence needs method = "order-parameter"')
        if self.method == "order-parameter" and self.block is not None:
            raise ValueError('block has no use with method = "order-parameter"')
        if self.method != "order-parameter":
            size = self.block_size
            if size % PART or self.draws % size:
                raise ValueError(
                    f"draws must be a multiple of block, and block of {PART}; got "
                    f"{self.draws} and {size}"
                )
        if self.evidence and self.chains < 3:
            raise ValueError("evidence needs at least 3 chains, for its error")
        if self.stored > self.draws:
            raise ValueError(
                f"stored must not exceed draws, {self.draws}; got {self.stored}"
            )
        return self


class TrainingRun(of(Descent, examples={"learning_rate": 0.01, "steps": 2000})):
    """[run] of gradient descent.

    Attributes:
        seed: seed of the initial weights.
        restarts: trainings from initial weights of their own.
    """

    seed: Seed = 0
    restarts: Count = 1

    @property
    def descent(self) -> Descent:
        """Of every training."""
        return chosen(Descent, self)

    @model_validator(mode="after")
    def _whole_blocks(self):
        self.descent
        return self


class BpkrStudy(AnyTask, frozen=True):
    """What the studies of Bayesian learning share.

    Attributes:
        network: widths and temperatures.
    """

    network: WidthsTable


class OrderParameterStudy(BpkrStudy, frozen=True):
    """Saddle points of Bayesian learning, over widths and temperatures."""

    kind: Literal["order-parameter"]
    run: OrderParameterRun = OrderParameterRun()


class PosteriorStudy(BpkrStudy, frozen=True):
    """Samples of the posterior, over widths and temperatures."""

    kind: Literal["posterior"]
    run: PosteriorRun = PosteriorRun()

    @property
    def keeps_blocks(self) -> bool:
        return self.run.method != "order-parameter"


class TrainingStudy(BpkrStudy, frozen=True):
    """Gradient descent of all weights, over widths and temperatures."""

    template: ClassVar[Mapping[str, Any]] = {
        "network.width": [10, 30, 100],
        "run.steps": 1000,
    }

    kind: Literal["training"]
    run: TrainingRun

    @property
    def keeps_blocks(self) -> bool:
        return True


def listed(values: float | Sequence[float]) -> list[float]:
    """A number or several as a list."""
    return [values] if isinstance(values, (int, float)) else list(values)


class LearningCurveRun(Table, frozen=True):
    """[run]: numbers of examples, training sets, and what stands beside the theory.

    Attributes:
        examples: numbers P of training examples.
        training_sets: how many training sets are drawn, of the largest size; the others
            are their beginnings.
        seed: seed of the training sets and of the Markov chains.
        corrections: whether corrections of order 1/N and the evidence are computed.
        samples: what is sampled beside the theory: "order-parameter" is the exact law
            of the order parameters, "weights" the weights by NUTS, others the weights
            by the sampler of this name.
        draws: samples that each chain draws.
        warmup: steps of each chain before its first sample; as of a posterior study
            when left out.
        chains: independent Markov chains.
    """

    examples: Annotated[list[Count], Field(min_length=1, examples=[[5, 10, 20, 40]])]
    training_sets: Count = 10
    seed: Seed = 0
    corrections: bool = False
    samples: list[Method] = []
    draws: Annotated[int, Field(ge=4)] = 200
    warmup: Count | None = None
    chains: Count = 4

    def sampling(self, method: str) -> Sampling:
        """How a method samples a posterior here."""
        draws, chains = self.draws, self.chains
        return PosteriorRun(
            method=method, draws=draws, warmup=self.warmup, chains=chains, stored=0
        ).sampling

    @model_validator(mode="after")
    def _distinct(self):
        for name in ("examples", "samples"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: values must be distinct")
        for method in self.samples:
            self.sampling(method)
        return self


class LearningCurveStudy(BpkrStudy, frozen=True):
    """Test errors against the number of examples, over widths and temperatures."""

    kind: Literal["learning-curve"]
    run: LearningCurveRun

    @property
    def keeps_blocks(self) -> bool:
        return any(method != "order-parameter" for method in self.run.samples)


class ModelSelectionRun(Table, frozen=True):
    """[run]: what is held out for validation, and by what law the evidence is taken.

    Attributes:
        validation: share of the training examples that is held out; when left out, a
            fifth, or none where the task has a test set called validation, whose
            examples are taken instead.
        seed: seed of what is held out, and of the Markov chains.
        exact: whether evidence and predictor are those of the exact law, and not of the
            saddle point.
        draws: samples that each of four chains of the exact law draws.
    """

    validation: Annotated[Fraction, Field(examples=[0.2])] | None = None
    seed: Seed = 0
    exact: bool = False
    draws: Count = 500


class ModelSelectionStudy(BpkrStudy, frozen=True):
    """Evidence and validation error over widths and temperatures."""

    kind: Literal["model-selection"]
    run: ModelSelectionRun = ModelSelectionRun()


class PruningNetwork(Table, frozen=True):
    """[network]: width and temperature at which heads are scored.

    Attributes:
        width: hidden width N.
        temperature: temperature T of the posterior.
    """

    width: Positive = 10.0
    temperature: Positive = 0.5


class PruningRun(Table, frozen=True):
    """[run]: draws of the exact law, counted for each chain, and random orders.

    The exact law costs most of the time, of which there is no forecast.

    Attributes:
        seed: seed of the exact law's chains and of random orders.
        exact: whether heads are scored by the exact law as well.
        draws: samples that each chain draws.
        warmup: steps of each chain before its first sample.
        chains: independent Markov chains.
        random_orders: random orders in which heads are pruned.
    """

    seed: Seed = 0
    exact: bool = False
    draws: Annotated[int, Field(ge=4)] = 250
    warmup: Count | None = None
    chains: Count = 4
    random_orders: Annotated[int, Field(ge=2, le=10_000)] = 20


class LearnedPruningStudy(AnyTask, frozen=True):
    """The mean network of a posterior without some of its heads.

    Attributes:
        network: width and temperature of the network.
    """

    kind: Literal["pruning"]
    network: PruningNetwork = PruningNetwork()
    run: PruningRun = PruningRun()
