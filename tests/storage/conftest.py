import numpy as np
import pytest
import xarray as xr


STUDY = """
kind = "trajectory"
[parameters]
beta = 1.255
"""


def described(symbol: str, units: str = "1") -> dict[str, str]:
    return {"long_name": f"the {symbol}", "units": units, "symbol": symbol}


@pytest.fixture
def study() -> str:
    return STUDY


@pytest.fixture
def dataset() -> xr.Dataset:
    """Every kind of variable that studies store, -inf and NaN included."""
    rng = np.random.default_rng(1)
    lyapunov = rng.normal(size=(3, 4))
    lyapunov[1, 3], lyapunov[2, 2] = -np.inf, np.nan
    flags = {
        "flag_values": np.arange(2, dtype=np.int8),
        "flag_meanings": "fixed chaotic",
    }
    return xr.Dataset(
        {
            "lyapunov": (
                ("beta", "exponent"),
                lyapunov,
                described("λ", "nats per token"),
            ),
            "phase": ("beta", np.array([0, 1, 1], np.int8), described("phase") | flags),
            "settled": ("beta", np.array([True, False, True]), described("settled")),
            "reason": ("beta", np.array(["λ < 0", "", "broad"]), described("why")),
            "m_o_se": (("beta", "time"), rng.normal(size=(3, 3000)), described("m^o")),
            "section": (("point",), np.zeros(0), described("m^o_1")),
            "gamma": ((), 127.0, described("γ")),
        },
        coords={"beta": ("beta", np.array([1.24, 1.25, 1.26]), described("β"))},
        attrs={"note": "kept", "n_spins": np.array([1000, 2000])},
    )
