r"""Floquet exponents of cycles of the published network in extended precision.

This program uses only the file of the published patterns, and neither the package's
map nor its tangent code nor JAX.  It writes `floquet.json`, against which tests hold
the package.  It needs mpmath, gmpy2 and NumPy and is run by hand:

    python tests/dmft/floquet.py

Equations (docs/theory/dmft.md, sections 1-3), with $A_d$ for $A_{t-d}$ and the clock n,
the position of the token that the newest attention vector $A_0$ draws:

    $m^\alpha_d = (1-\epsilon) \sum_c w_c W^\alpha_c \tanh(\beta W^o_c \cdot A_d)
                  + \epsilon\, m^{\alpha,PE}(n - d)$
    $A_{t+1} = \sum_d p_d\, m^v_d$, $p_d \propto \exp(\gamma\, m^q_0 \cdot m^k_d)$
    $\delta A_{t+1} = \sum_d L_d\, \delta A_d$
    $L_d = p_d B^v_d + D_d (m^q_0 B^k_d) + [d = 0] \sum_e D_e (m^k_e B^q_0)$
    $D_d = \gamma\, p_d (m^v_d - A_{t+1})$, $B^\alpha_d = dm^\alpha_d / dA_d$

The state is the attention window $z = (A_0, \dots, A_{C-1})$, newest first, together
with n.  A cycle is given by z at n = 0.  The parameters are the double-precision
numbers of the file, taken exactly.

1. A simulation of all temperatures in double precision from the starting state in the
   file discards `TRANSIENT` tokens; an orbit then closes to `CLOSED` within `LONGEST`.
2. Newton's method on $\phi^p(z) = z$ in extended precision refines the orbit.  The
   period p is the least one: after no smaller multiple of C does the orbit close.
3. The monodromy matrix $J_p \cdots J_1$ (MC, MC) is multiplied out and its eigenvalues
   mu are computed; $\lambda_j = \ln|\mu_j| / p$ in nats per token.

**Digits.** The multipliers of one cycle span hundreds of powers of ten or more, and the
error of every eigenvalue is about the unit of rounding times the largest one.  Each
step is a shift with the block $L_{C-1}$ at its end, so $|\det J_t| = |\det L_{C-1}|$
and the product of all multipliers is known to full relative precision before any of
them.  The digits used are a quarter of those of the product and `SPARE` more: more than
the smallest multiplier needs unless its exponent exceeds a quarter of the sum.

**Checks.** The whole calculation is repeated with half as many digits again.  All
exponents must agree to `AGREEMENT`, and their sum must be $\langle\ln|\det J_t|\rangle$
to the same accuracy, which fails if the digits are too few.  A multiplier vanishes only
where some $L_{C-1}$ is singular; then the product is zero and the program stops.  No
exponent of these cycles is minus infinity.
"""

import json
import sys
from pathlib import Path

import mpmath as mp
import numpy as np


DIRECTORY = Path(__file__).resolve().parent
PATTERNS = DIRECTORY.parents[1] / "statmech_attn/dmft/presets/poclopez-pe2.json"
BETAS = (
    0.25,
    1.0,
    1.2432,
    1.25,
    1.2676,
    1.271,
    1.2711,
    1.273125,
    1.274353,
    1.294921875,
    1.3125,
    1.32421875,
    1.453125,
    1.53515625,
    1.74609375,
    1.78125,
    1.79296875,
    1.8046875,
    1.81640625,
    1.8515625,
    1.951171875,
    2.05078125,
    2.1328125,
    2.14,
    2.16796875,
    2.21484375,
    2.2265625,
    2.267578125,
    2.3671875,
    2.384765625,
    2.490234375,
    2.501953125,
    2.524,
    2.559,
    2.5595,
    3.0,
)
LONGEST = 300  # tokens
CLOSED = 1e-6
TRANSIENT = 10**6  # tokens, a multiple of C
SPARE = 100
AGREEMENT = 1e-20
DESCRIPTION = (
    "Cycles of the published network, written by floquet.py. window: attention vectors "
    "of the cycle, newest first, when the newest draws a token at position 0 (clock "
    "0). exponents: all 12 Lyapunov exponents of the cycle in nats per token, largest "
    "first, rounded to double precision. digits: decimal digits used; the calculation "
    "with half as many again agrees to 1e-20."
)


class PublishedNetwork:
    """The published network at one temperature, in the precision of `mp.dps`."""

    def __init__(self, beta: float):
        file = json.loads(PATTERNS.read_text())
        self.beta, self.gamma, epsilon, *fractions = exactly(
            [beta, file["gamma"], file["epsilon"], *file["fractions"]]
        )
        self.context = file["context"]
        self.output = exactly(file["semantic"]["o"])
        self.weights, self.positional = {}, {}
        for kind in "vqk":
            signs = exactly(file["semantic"][kind])
            self.weights[kind] = (1 - epsilon) * signs * np.array(fractions)
            signs = exactly(file["positional"][kind])
            codes = positional_codes(self.context, signs.shape[1])
            self.positional[kind] = epsilon * (codes @ signs.T) / signs.shape[1]

    def token(self, attention, position):
        """Overlaps v, q, k of the token drawn, and their derivatives in `attention`."""
        means = elementwise(mp.tanh, self.beta * (attention @ self.output))
        slopes = self.beta * (1 - means**2)
        return {
            kind: (
                weights @ means + self.positional[kind][position % self.context],
                (weights * slopes) @ self.output.T,
            )
            for kind, weights in self.weights.items()
        }

    def attend(self, tokens):
        """The next attention vector and its derivatives L_d (C, M, M)."""
        (query, query_slope) = tokens[0]["q"]
        v, k = (np.array([token[kind][0] for token in tokens]) for kind in "vk")
        p = elementwise(mp.exp, self.gamma * (k @ query))
        p = p / p.sum()
        attention = p @ v
        D = self.gamma * p[:, None] * (v - attention)
        blocks = [
            p[d] * token["v"][1] + np.outer(D[d], query @ token["k"][1])
            for d, token in enumerate(tokens)
        ]
        blocks[0] = blocks[0] + D.T @ (k @ query_slope)
        return attention, blocks

    def follow(self, z, period):
        """Follow z (C, M), the window at clock 0, for `period` tokens.

        Returns:
            The windows after every turn of the clock, the first being z; the
            derivative (MC, MC) of the last; the product of |det J_t| over the tokens.
        """
        C, M = z.shape
        windows, window = [z], list(z)
        tokens = [self.token(window[d], -d) for d in range(1, C)]
        tangent = list(exactly(np.eye(M * C)).reshape(C, M, M * C))
        determinant = mp.mpf(1)
        for t in range(period):
            tokens = [self.token(window[0], t), *tokens[: C - 1]]
            attention, blocks = self.attend(tokens)
            row = sum(L @ rows for L, rows in zip(blocks, tangent, strict=True))
            determinant *= abs(mp.det(matrix(blocks[-1])))
            window, tangent = [attention, *window[:-1]], [row, *tangent[:-1]]
            if (t + 1) % C == 0:
                windows.append(np.array(window))
        return windows, np.concatenate(tangent), determinant


def exactly(numbers):
    """Double-precision numbers as an array of numbers of mpmath."""
    return elementwise(mp.mpf, np.asarray(numbers, float))


def elementwise(function, values):
    """An array of the function's values, which are numbers of mpmath."""
    return np.frompyfunc(function, 1, 1)(values)


def matrix(rows):
    """An array (n, n) as a matrix of mpmath."""
    return mp.matrix(rows.tolist())


def positional_codes(context, bits):
    """Binary codes (C, bits) of the positions, most significant bit first, 0 as -1."""
    places = np.arange(bits)[::-1]
    return exactly(2 * (np.arange(context)[:, None] >> places & 1) - 1)


def simulate(betas):
    """Attention vectors (time, M, betas) after `TRANSIENT` tokens, double precision.

    The first row is drawn at clock 0, at the end of the window that starts there.
    """
    file = json.loads(PATTERNS.read_text())
    networks = [PublishedNetwork(beta) for beta in betas]
    C = file["context"]
    weights, positional = (
        {kind: np.array(numbers, float) for kind, numbers in table.items()}
        for table in (networks[0].weights, networks[0].positional)
    )
    output, gamma = np.array(file["semantic"]["o"], float), file["gamma"]

    def token(attention, clock):
        means = np.tanh(betas * (output.T @ attention))
        return [weights[k] @ means + positional[k][clock % C][:, None] for k in "vqk"]

    window = [np.outer(A, np.ones(len(betas))) for A in file["start"]["window"]]
    start = file["start"]["next_position"]
    v, k = np.zeros((2, C, *window[0].shape))
    for d in range(1, C):
        v[start - d], _, k[start - d] = token(window[d], start - d)
    rows, attention = [], window[0]
    for clock in range(start, TRANSIENT + 2 * LONGEST):
        if clock > TRANSIENT - C:
            rows.append(attention)
        v[clock % C], query, k[clock % C] = token(attention, clock)
        scores = gamma * (query * k).sum(axis=1)
        p = np.exp(scores - scores.max(axis=0))
        attention = ((p / p.sum(axis=0))[:, None] * v).sum(axis=0)
    return np.array(rows)


def least_period(rows, context):
    """Period of attention vectors (time, M); 0 if they do not repeat."""
    for period in range(context, LONGEST + 1, context):
        change = rows[period : period + LONGEST] - rows[:LONGEST]
        if np.abs(change).max() < CLOSED:
            return period
    return 0


def refine(network, z, period):
    """Newton's method on phi^p(z) = z, to the precision of `mp.dps`.

    Returns:
        The window (C, M) of the cycle at clock 0, its monodromy matrix and the product
        of |det J_t| over the period.
    """
    digits = mp.mp.dps
    for i in range(20):
        with mp.workdps(min(digits, 30 * 2**i)):
            windows, monodromy, determinant = network.follow(z, period)
            residual = (windows[-1] - z).ravel()
            if abs(residual).max() < mp.mpf(10) ** (SPARE // 4 - digits):
                break
            slope = mp.eye(z.size) - matrix(monodromy)
            step = mp.lu_solve(slope, mp.matrix(residual.tolist()))
            z = z + np.array(list(step)).reshape(z.shape)
    else:
        raise ArithmeticError(f"No cycle of period {period} at beta = {network.beta}.")
    if min([abs(w - z).max() for w in windows[1:-1]], default=1) < CLOSED / 1000:
        raise ArithmeticError(f"{period} is not the least period.")
    return z, monodromy, determinant


def spectrum(network, z, period):
    """Cycle, exponents (largest first) and mean of ln |det J_t|, in nats per token."""
    z, monodromy, determinant = refine(network, z, period)
    multipliers = mp.eig(matrix(monodromy), left=False, right=False)
    exponents = sorted((mp.log(abs(mu)) / period for mu in multipliers), reverse=True)
    return z, exponents, mp.log(determinant) / period


def digits_for(beta, z, period):
    """Decimal digits that hold the range of the multipliers, and `SPARE` more."""
    with mp.workdps(50):
        _, _, determinant = PublishedNetwork(beta).follow(exactly(z), period)
        return SPARE + int(-mp.log10(determinant) / 4)


def checked_cycle(beta, z, period):
    """What the file holds of one cycle; z (C, M) is a guess in double precision."""
    digits = digits_for(beta, z, period)
    with mp.workdps(digits):
        z, rough, _ = spectrum(PublishedNetwork(beta), exactly(z), period)
    with mp.workdps(digits + digits // 2):
        z, exponents, log_determinant = spectrum(PublishedNetwork(beta), z, period)
        difference = max(abs(a - b) for a, b in zip(rough, exponents, strict=True))
        excess = abs(sum(exponents) - log_determinant)
    if max(difference, excess) > AGREEMENT:
        raise ArithmeticError(f"{digits} digits are too few at beta = {beta}.")
    return {
        "beta": beta,
        "period": period,
        "digits": digits,
        "window": [[float(a) for a in attention] for attention in z],
        "exponents": [float(x) for x in exponents],
    }


def main():
    """Find, refine and write the cycles of all temperatures."""
    file = json.loads(PATTERNS.read_text())
    rows, C = simulate(BETAS), file["context"]
    cycles = []
    for i, beta in enumerate(BETAS):
        period = least_period(rows[..., i], C)
        if period == 0:
            raise ArithmeticError(f"No period up to {LONGEST} at beta = {beta}.")
        cycles.append(checked_cycle(beta, rows[C - 1 :: -1, :, i], period))
        sys.stdout.write(
            f"beta = {beta}: period {period}, {cycles[-1]['digits']} digits\n"
        )
        sys.stdout.flush()
    content = {
        "description": DESCRIPTION,
        "patterns": PATTERNS.stem,
        "gamma": file["gamma"],
        "epsilon": file["epsilon"],
        "cycles": cycles,
    }
    (DIRECTORY / "floquet.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
