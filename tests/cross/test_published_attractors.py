"""What the published network is known to do to a careless scan."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft, studies
from statmech_attn.dynamics import PHASES


def scan(betas, **run):
    """By XLA: which of 68 chaotic orbits leaves last, and when, rounding decides."""
    study = {
        "kind": "bifurcation",
        "parameters": {"beta": [float(b) for b in betas]},
        "run": {"exponents": 3, "compiler": "xla", **run},
    }
    return studies.run(studies.parse(study))


def names(dataset):
    return np.array(PHASES)[dataset.phase.values]


@pytest.fixture(scope="module")
def many_starts():
    return scan(
        [1.2645, 1.2738],
        start="random",
        starts=68,
        seed=1,
        transient=150_000,
        steps=20_000,
        max_doublings=3,
    )


@pytest.mark.slow
def test_a_torus_and_a_cycle_of_period_44_coexist(many_starts):
    here = many_starts.sel(beta=1.2645)
    found = set(zip(names(here).tolist(), here.period.values.tolist(), strict=True))
    assert found == {("periodic", 44), ("quasiperiodic", 0)}


@pytest.mark.slow
def test_cycles_of_period_28_and_32_coexist(many_starts):
    here = many_starts.sel(beta=1.2738)
    assert set(names(here)) == {"periodic"}
    assert set(here.period.values.tolist()) == {28, 32}


@pytest.mark.slow
def test_chaotic_transients_near_1_2738_are_not_the_last_word():
    """Short runs see chaos; runs that go on until they settle see cycles."""
    betas = np.linspace(1.2732, 1.2744, 31)
    short = scan(betas, transient=2_000, steps=10_000, extend=False)
    patient = scan(betas, transient=300_000, steps=10_000, max_doublings=4)
    early, late = names(short), names(patient)
    assert np.mean(np.isin(early, ("chaotic", "transient", "undetermined"))) > 0.5
    settled = late == "periodic"
    assert settled.mean() > 0.8
    assert (patient.period.values[settled] % 4 == 0).all()
    # A cycle is never reported with the exponents of the chaos before it.
    for found, phase in ((short, early), (patient, late)):
        cycles = np.isin(phase, ("fixed", "periodic"))
        assert (found.lyapunov.values[cycles, 0] < 0).all()
    # What left chaos inside its short window is not called chaos.
    leading = short.lyapunov_weighted.values[:, 0]
    assert (leading[early == "chaotic"] > 0.05).all()


@pytest.mark.slow
def test_torus_is_born_with_the_rotation_of_the_multipliers():
    """Neimark-Sacker: arg(mu) / 2 pi of the clock's Jacobian at the onset."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=4)
    betas = np.array([1.2420, 1.2425])
    params = dmft.parameters(betas, file.gamma, file.epsilon)
    state = dmft.advance(net, params, dmft.from_checkpoint(net, params, file), 400_000)
    multipliers = []
    for i in range(2):
        here = jax.tree.map(lambda x, i=i: x[..., i] if x.ndim else x, (params, state))
        product = np.eye(12)
        for _ in range(4):
            product = np.asarray(dmft.jacobian(net, *here)) @ product
            here = here[0], dmft.step(net, *here)
        eigenvalues = np.linalg.eigvals(product)
        multipliers.append(eigenvalues[np.abs(eigenvalues).argmax()])
    size, angle = np.abs(multipliers), np.abs(np.angle(multipliers)) / (2 * np.pi)
    assert (size < 1).all() and size[1] > size[0]
    onset = betas[0] + (1 - size[0]) * np.diff(betas)[0] / np.diff(size)[0]
    born = angle[0] + (onset - betas[0]) * np.diff(angle)[0] / np.diff(betas)[0]

    above = onset + np.array([4e-4, 8e-4])
    found = scan(above, transient=150_000, steps=30_000)
    assert (names(found) == "quasiperiodic").all()
    assert (found.n_zero.values == 1).all()
    rotation = found.rotation_number.values
    # Linear in beta above the onset as well, with another slope.
    limit = 2 * rotation[0] - rotation[1]
    assert abs(limit - born) < 1e-4
    # The radius grows like the square root of the distance from the onset.
    radius = found.strobe.values.max(axis=1) - found.strobe.values.min(axis=1)
    assert radius[1] / radius[0] == pytest.approx(np.sqrt(2), rel=0.05)
