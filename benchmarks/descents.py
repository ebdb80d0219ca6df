"""Gradient descents on the action of two layers, written anew from its equations."""

from collections.abc import Callable

import numpy as np

from statmech_attn import bpkr


GRADIENT = 1e-5  # norm at which a descent ends
RATE, FADED, LONGEST = 0.05, 0.999, 20_000  # of Adam: rate, its decay, steps


class Action:
    """The action of two layers of two heads, of numbers and its gradient by hand.

    S = sum_l (|C_l|^2 - 2 sum_i ln C_l,ii) + E / N with U_1 = F_1 F_1^T,
    F_l = (1 x F_{l+1}) C_l; the unknowns are C_l with the logarithm of the diagonal.
    """

    def __init__(self, problem: bpkr.Problem):
        self.blocks, self.y = np.asarray(problem.operator.blocks), np.asarray(problem.y)
        self.T, self.N = float(problem.temperature), float(problem.widths.max())
        self.rows = [rows for rows, _ in problem.shapes]  # 4, 2, 1
        self.size = sum(n * (n + 1) // 2 for n in self.rows)

    def factors(self, point):
        """Lower factors, readout last."""
        used, factors = 0, []
        for n in self.rows:
            entries = np.zeros((n, n))
            count = n * (n + 1) // 2
            entries[np.tril_indices(n)] = point[used : used + count]
            entries[np.diag_indices(n)] = np.exp(np.diagonal(entries))
            used += count
            factors.append(entries)
        return factors

    def gradient(self, point):
        C_1, C_2, C_a = self.factors(point)
        F_2 = np.kron(np.eye(2), C_a) @ C_2
        wide = np.kron(np.eye(2), F_2)
        F_1 = wide @ C_1
        K = np.einsum("ab,abpq->pq", F_1 @ F_1.T, self.blocks)
        inverse = np.linalg.inv(K + self.T * np.eye(len(K)))
        alpha = inverse @ self.y
        A = inverse - np.outer(alpha, alpha)
        slope = np.einsum("abpq,pq->ab", self.blocks, A) / self.N
        d_F_1 = (slope + slope.T) @ F_1
        d_wide = d_F_1 @ C_1.T
        d_F_2 = d_wide[:2, :2] + d_wide[2:, 2:]
        d_C_2 = np.kron(np.eye(2), C_a).T @ d_F_2
        d_C_a = np.trace(d_F_2 @ C_2.T).reshape(1, 1)
        parts = []
        for C, d in zip((C_1, C_2, C_a), (wide.T @ d_F_1, d_C_2, d_C_a), strict=True):
            d = d + 2 * C
            d[np.diag_indices(len(d))] *= np.diagonal(C)
            d[np.diag_indices(len(d))] -= 2
            parts.append(d[np.tril_indices(len(d))])
        return np.concatenate(parts)

    def by_torch(self):
        """The gradient by torch, of the action alone."""
        import torch

        double = torch.float64
        blocks, y = (torch.tensor(x, dtype=double) for x in (self.blocks, self.y))
        unit = torch.eye(len(self.y), dtype=double)
        kron = lambda F: torch.kron(torch.eye(2, dtype=double), F)

        def factor(entries, n):
            rows, columns = torch.tril_indices(n, n)
            C = torch.zeros((n, n), dtype=double)
            C = C.index_put((rows, columns), entries)
            return C - torch.diag(C.diagonal()) + torch.diag(C.diagonal().exp())

        def action(point):
            parts = torch.split(point, [n * (n + 1) // 2 for n in self.rows])
            C = [factor(part, n) for part, n in zip(parts, self.rows, strict=True)]
            F = kron(kron(C[2]) @ C[1]) @ C[0]
            K = torch.einsum("ab,abpq->pq", F @ F.T, blocks) + self.T * unit
            root = torch.linalg.cholesky(K)
            solved = torch.cholesky_solve(y[:, None], root)[:, 0]
            E = 2 * root.diagonal().log().sum() + y @ solved
            entropy = sum((c**2).sum() - 2 * c.diagonal().log().sum() for c in C)
            return entropy + E / self.N

        def gradient(point):
            point = torch.tensor(point, requires_grad=True)
            action(point).backward()
            return point.grad.numpy()

        return gradient


def adam(gradient: Callable, size: int) -> tuple[np.ndarray, int]:
    """Point where the gradient is small, from the GP limit, and steps to it."""
    point, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, LONGEST + 1):
        slope = gradient(point)
        if np.linalg.norm(slope) <= GRADIENT:
            break
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        direction = mean / (1 - 0.9**step)
        direction /= np.sqrt(square / (1 - 0.999**step)) + 1e-12
        point = point - RATE * FADED**step * direction
    return point, step
