"""Programs for a GPU, as far as they can be held without one (tests/cross has one)."""

import ctypes
import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest


pytest.importorskip("llvmlite", exc_type=ImportError)
gpu = pytest.importorskip("statmech_attn.native.gpu", exc_type=ImportError)
Native = pytest.importorskip("statmech_attn.native.program").Native
HOPPER = SimpleNamespace(compute_capability="9.0", local_hardware_id=3)


@pytest.fixture
def driver(monkeypatch):
    """Calls of a driver that does nothing, and the assembly that it was given."""
    calls = []

    def called(name, *arguments):
        calls.append((name, arguments))

    monkeypatch.setattr(gpu, "_driver", called)
    monkeypatch.setattr(gpu.Gpu, "placed", lambda _, x, dtype: jnp.asarray(x, dtype))
    blank = lambda _, shapes: [jnp.zeros(s.shape, s.dtype) for s in shapes]
    monkeypatch.setattr(gpu.Gpu, "blank", blank)
    return calls


def assembly(calls):
    (text,) = [a[1].decode() for name, a in calls if name == "cuModuleLoadData"]
    return text


def orbit(x, r):
    body = lambda _, x: r * jnp.tanh(x) * (1 - x)
    return jax.lax.fori_loop(0, 100, body, x)


def test_sums_and_products_are_rounded_as_they_are_written(driver):
    """Where PTX leaves the rounding open, a driver may fuse them, and bits change."""
    Native(orbit, lambda n: (np.zeros(n), np.zeros(n)), device=HOPPER)
    text = assembly(driver)
    assert ".target sm_90" in text and ".visible .entry blocks" in text
    kinds = re.findall(r"\b((?:add|sub|mul|fma|div|sqrt)[.\w]*f64)", text)
    assert {"add", "mul", "fma", "div"} <= {kind.split(".")[0] for kind in kinds}
    assert all(".rn." in kind for kind in kinds)


def test_a_thread_for_each_lane_and_all_arrays_in_order(driver):
    program = Native(orbit, lambda n: (np.zeros(n), np.zeros(n)), device=HOPPER)
    n = 1000
    assert program(np.full(n, 0.5), np.full(n, 2.0)).shape == (n,)
    (launch,) = [a for name, a in driver if name == "cuLaunchKernel"]
    blocks, _, _, threads, *_ = (x.value for x in launch[1:8])
    assert n <= blocks * threads < n + threads
    values = [ctypes.cast(p, ctypes.POINTER(ctypes.c_int64))[0] for p in launch[9]]
    assert len(values) == 4 and values[-1] == n
    ordinals = {a[1].value for name, a in driver if name == "cuDeviceGet"}
    assert ordinals == {HOPPER.local_hardware_id}


def test_functions_of_the_library_need_cuda(monkeypatch, tmp_path):
    """Without its library the program is one for XLA, whose reason this line is."""
    monkeypatch.setattr(gpu.sys, "path", [])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(gpu.Unsupported, match="libdevice, which is not found"):
        Native(jnp.sin, lambda n: (np.zeros(n),), device=HOPPER)


def test_what_the_driver_cannot_load_is_for_xla(monkeypatch):
    """The reason is one line, which `compiler = "auto"` keeps."""

    def text(code, place):
        place._obj.value = b"no CUDA-capable device is detected"

    library = SimpleNamespace(cuInit=lambda flags: 100, cuGetErrorString=text)
    monkeypatch.setattr(gpu, "_library", lambda: library)
    with pytest.raises(gpu.Unsupported, match="loaded: CUDA's cuInit failed: no CUDA"):
        Native(orbit, lambda n: (np.zeros(n), np.zeros(n)), device=HOPPER)
