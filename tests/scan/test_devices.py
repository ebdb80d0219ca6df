"""Lanes over several devices, limits of threads and of memory."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from statmech_attn import batches
from statmech_attn.batches import hardware, lanes, memory


# Four devices of the host, as accelerators of one machine; 37 points fill no batch.
SEVERAL = """
import json, os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from statmech_attn import batches, dmft
from statmech_attn.dynamics.attractors.orbit_follower import Follower, Search
from statmech_attn.dynamics import System
from statmech_attn.dynamics.diagrams import Plan, Points, run, Scan

file = dmft.load("poclopez-pe2")
net = dmft.network(file.patterns, context=2)
betas = np.linspace(1.0, 2.5, 37)
params = dmft.parameters(betas, file.gamma, file.epsilon)
points = Points(params, dmft.from_row(net, params, 0))
plan = Plan(
    transient=100, steps=512, exponents=1, max_doublings=1, compiler="xla"
)
logistic = System(lambda x, r: r * x * (1 - x))

def results(width):
    scan = Scan(dmft.system(net), plan, points, lanes=width)
    outcome = run(scan, points)
    slopes = np.linspace(2.6, 3.9, 37)
    follower = Follower(logistic, Search(horizon=1024, record=64), slopes / 5, slopes)
    looks = list(follower.look(slopes / 5, slopes, np.arange(37)))
    some = points.take(np.arange(width).clip(max=36))
    _, seen = scan.record(width, scan.arrays, *some)
    parts = [len(x.sharding.device_set) for x in (seen[0], seen[2])]
    parts.append(seen[0].sharding.shard_shape(seen[0].shape)[-1])
    return jax.tree.leaves((outcome, looks)), scan, parts

several, scan, parts = results(batches.lanes_for(37))
program = scan.examine.program(scan.lanes)._call.as_text()
words = "all-gather", "all-reduce", "collective-permute", "all-to-all"
talk = [word for word in words if word in program]
with jax.default_device(jax.devices()[2]), batches.limited(1):
    one, alone, _ = results(16)
    width = batches.lanes_for(37)
pairs = list(zip(several, one, strict=True))
equal = [np.array_equal(x, y, equal_nan=True) for x, y in pairs]
print(json.dumps(dict(
    lanes=scan.lanes, workers=batches.workers(), parts=parts, talk=talk, one=width,
    differ=[i for i, same in enumerate(equal) if not same], compared=len(equal),
    bytes=scan.examine.bytes,
    bytes_alone=alone.examine.bytes,
)))
"""


@pytest.fixture(scope="module")
def several():
    command = [sys.executable, "-W", "error", "-c", SEVERAL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_several_devices_give_the_bits_of_one(several):
    assert several["compared"] > 25
    assert several["differ"] == []


@pytest.mark.slow
def test_each_device_computes_its_part_and_they_do_not_talk(several):
    assert several["lanes"] == 64 and several["workers"] == 1
    assert several["parts"] == [4, 4, 16]
    assert several["talk"] == []
    # 16 lanes on each, not 64; what a compiler keeps between differs by a thousandth.
    assert several["bytes"] == pytest.approx(several["bytes_alone"], rel=0.01)


@pytest.mark.slow
def test_a_chosen_device_computes_alone(several):
    assert several["one"] == 40


# A network whose weights and inputs two devices could share evenly.
TRAINED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from statmech_attn.bpkr import Problem
from statmech_attn.montecarlo import weight_space
from statmech_attn.storage.writers.blocks import BlockMemory
from statmech_attn import batches
from statmech_attn.training import Descent
from statmech_attn.training.descent import Trainer

keys = jax.random.split(jax.random.key(3), 3)
xi, Y = jax.random.normal(keys[0], (2, 4, 2)), jax.random.normal(keys[1], (2,))
posed = Problem(xi, Y, heads=(2,), width=4, temperature=0.1)
problem = weight_space.posterior(posed, reduced=False).with_traced_temperature()
start = problem.draw_prior(keys[2])
terms = weight_space.WeightPosterior.loss_terms

def trained():
    trainer = Trainer(terms, Descent(learning_rate=0.02, steps=20, block=10), problem,
    start)
    return trainer.run(problem, start, BlockMemory(warmup=0))

both = trained()
assert len(both.weights.sharding.device_set) == 2
with jax.default_device(jax.devices()[0]):
    alone = trained()
for several, one in zip(both, alone, strict=True):
    np.testing.assert_array_equal(several, one)

# A state may hold a random key.
draw = lambda key, x: (jax.random.split(key)[1], x + jax.random.normal(key))
given = jax.random.key(1), np.ones(4)

def drawn():
    key, x = batches.Compiled(draw, *given, shared=2)(*given)
    return jax.random.key_data(key), x

both = drawn()
assert len(both[1].sharding.device_set) == 2
with jax.default_device(jax.devices()[0]):
    alone = drawn()
for several, one in zip(both, alone, strict=True):
    np.testing.assert_array_equal(several, one)
"""


@pytest.mark.slow
def test_a_training_is_not_shared_and_has_the_bits_of_one_device():
    command = [sys.executable, "-W", "error", "-c", TRAINED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


# The state of a run on minibatches holds a random key.
MINIBATCHES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
from statmech_attn.storage.writers.blocks import BlockMemory
from statmech_attn.tasks import one_shot
from statmech_attn.training import Minibatches
from statmech_attn.training.stochastic import (
    ClassPatches, StochasticTrainer, token_embedding
)
from statmech_attn.training.transformer import initial

sizes = dict(n_inputs=4, heads=(2,), width=4, key_size=2)
keys = jax.random.split(jax.random.key(3), 4)
start = initial(keys[0], gain=3**0.5, **sizes)
setting = one_shot.Setting(image_size=2, patch=2, channels=1)
tokens = token_embedding(one_shot.codes(setting), 1)
patches = jax.random.normal(keys[1], (4, 2, 1, 4), jnp.float32)
patches = ClassPatches(patches, patches[:2], tokens)
choices = Minibatches(
    learning_rate=0.02, steps=12, block=10, batch=4, validation_batches=1
)

def trained():
    trainer = StochasticTrainer(choices, patches, start, keys[2])
    return trainer.run(keys[3], start, BlockMemory(warmup=0))

both = trained()
assert len(both.weights.a.sharding.device_set) == 2
with jax.default_device(jax.devices()[0]):
    alone = trained()
assert both.steps == 12 and (np.asarray(both.weights.a) != start.a).all()
# The program of several devices is another one: float32 is rounded in another order,
# by 2^-24 in some dozen terms of a few units, and 12 steps hardly spread it.
for several, one in zip(*map(jax.tree.leaves, (both, alone)), strict=True):
    np.testing.assert_allclose(several, one, rtol=0, atol=1e-5)
"""


@pytest.mark.slow  # two programs; a state with a key is in the fast test
def test_minibatches_on_several_devices_learn_what_they_learn_on_one():
    command = [sys.executable, "-W", "error", "-c", MINIBATCHES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


class Accelerator:
    """What `lanes` asks of a device."""

    platform = "gpu"

    def __init__(self, limit=None, used=0):
        stats = {"bytes_limit": limit, "bytes_in_use": used}
        self.memory_stats = lambda: stats if limit else None


@pytest.fixture
def accelerators(monkeypatch):
    def pretend(*devices):
        for module in (hardware, lanes):
            monkeypatch.setattr(module, "devices", lambda: devices)

    return pretend


def test_accelerators_share_a_wide_batch(accelerators):
    accelerators(Accelerator(), Accelerator(), Accelerator())
    assert batches.workers() == 1
    assert batches.lanes_for(10**6) == 3 * lanes.ACCELERATOR_LANES
    assert batches.lanes_for(25) == 3 * 16


def test_a_batch_is_cut_to_the_memory_of_the_fullest_device(accelerators):
    gib = 2**30
    accelerators(Accelerator(10 * gib), Accelerator(10 * gib, used=8 * gib))
    most = lanes.SHARE * 2 * gib
    assert batches.lanes_that_fit(16384, int(most)) == 16384
    fit = batches.lanes_that_fit(16384, 16 * gib)
    assert fit % 16 == 0
    assert fit * gib / 1024 <= most < (fit + 16) * gib / 1024
    with pytest.raises(ValueError, match=r"8 points take 8\.00 GiB.*2\.00 GiB left"):
        batches.lanes_that_fit(16384, 8 * gib * 1024)
    accelerators(Accelerator())  # it does not tell
    assert batches.lanes_that_fit(8192, 10**15) == 8192


def test_a_limit_holds_in_its_thread_only():
    every = batches.workers()
    seen = []
    with batches.limited(1):
        assert batches.workers() == 1
        other = threading.Thread(target=lambda: seen.append(batches.workers()))
        other.start()
        other.join()
    assert seen == [every] and batches.workers() == every
    with pytest.raises(ValueError, match="count must be at least 1; got 0"):
        with batches.limited(0):
            pass


def test_one_worker_computes_in_this_thread():
    def job(item, stop):
        done.append((item, threading.current_thread()))
        if item == 2:
            raise ArithmeticError("of the job")
        return -item

    done = []
    with batches.limited(1), pytest.raises(ArithmeticError, match="of the job"):
        for item, result in batches.run_all(job, range(4)):
            assert result == -item
    assert [item for item, _ in done] == [0, 1, 2]
    assert {thread for _, thread in done} == {threading.current_thread()}


def test_a_batch_that_is_given_up_with_one_worker_begins_no_other():
    begun = []
    with batches.limited(1):
        for _ in batches.run_all(lambda item, stop: begun.append(item), range(9)):
            break
    assert begun == [0]


COUNTED = """
import jax, numpy as np
from statmech_attn.batches import compilations
function = jax.jit(lambda x: 3 * x)
before = compilations.count()
seen = []
for x in (np.zeros(5), np.ones(5), np.ones(6)):
    function(x)
    seen.append(compilations.count().since(before))
assert [count.compiled for count in seen] == [1, 1, 2], seen
assert seen[0] == seen[1] and seen[0].read == 0 and seen[0].seconds > 0, seen
"""


def test_every_compilation_is_counted_and_a_known_shape_is_none():
    """In a process of its own: others' threads may compile here at the same time."""
    plain = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, "-c", COUNTED]
    done = subprocess.run(command, env=plain, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


CACHED = """
import sys, jax, numpy as np
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
from statmech_attn.batches import compilations
before = compilations.count()
jax.jit(lambda x: 3 * x)(np.zeros(5))
print(compilations.count().since(before))
"""


@pytest.mark.slow
def test_programs_read_from_the_cache_are_counted_apart(tmp_path):
    command = [sys.executable, "-c", CACHED, str(tmp_path)]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        for _ in range(2)
    )
    assert first.startswith("compiled 1 programs in ")
    assert second.startswith("compiled 0 programs, 1 from the cache in ")


@pytest.mark.parametrize(
    ("version", "files", "left"),
    [
        (2, {"memory.max": "1000", "memory.current": "700"}, [350]),
        (2, {"memory.max": "max", "memory.current": "700"}, []),
        (1, {"memory.limit_in_bytes": "900", "memory.usage_in_bytes": "100"}, [850]),
        (2, {"memory.max": "1000"}, []),
    ],
)
def test_control_groups_leave_what_their_files_say(tmp_path, version, files, left):
    """Of the group and of those above; pages of files count as free."""
    root = tmp_path / "memory" if version == 1 else tmp_path
    inner = root / "batch" / "job"
    inner.mkdir(parents=True)
    reclaimable = memory.VERSION_1[2] if version == 1 else memory.VERSION_2[2]
    for name, text in files.items():
        (inner.parent / name).write_text(text + "\n")
    (inner.parent / "memory.stat").write_text(f"anon 5\n{reclaimable} 50\n")
    membership = tmp_path / "cgroup"
    prefix = "4:cpu,memory" if version == 1 else "0:"
    membership.write_text(f"{prefix}:/batch/job\n9:pids:/x\n")
    assert list(memory._left_by_groups(tmp_path, membership)) == left
    assert list(memory._left_by_groups(tmp_path, Path("/nowhere"))) == []


LIMITED = """
import resource, psutil
from statmech_attn.batches.memory import available_memory
used = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, resource.RLIM_INFINITY))
print(available_memory())
"""


def test_a_limit_of_address_space_is_seen():
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) <= 2**26
    assert memory.available_memory() > 2**26
