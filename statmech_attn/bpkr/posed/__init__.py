"""A learning problem as it is posed: prior, examples, kernels, and their algebra."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr.posed import quantities as quantities
    from statmech_attn.bpkr.posed.checked_arrays import check_test as check_test
    from statmech_attn.bpkr.posed.kernel_forms import (
        MEMORY_LIMIT as MEMORY_LIMIT,
        most_paths as most_paths,
    )
    from statmech_attn.bpkr.posed.kernels import cross_kernel as cross_kernel
    from statmech_attn.bpkr.posed.linear_algebra import (
        inverse_cholesky as inverse_cholesky,
    )


lazy.attach(__name__, checks=False)
