"""Monte Carlo checks of the theories: finite networks, and samplers of weights."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.montecarlo.finite_networks.dataset import (
        stationary as stationary,
    )
    from statmech_attn.montecarlo.finite_networks.extensive import (
        extensive_plan as extensive_plan,
        simulate_extensive as simulate_extensive,
    )
    from statmech_attn.montecarlo.finite_networks.extensive_samples import (
        ExtensiveSamples as ExtensiveSamples,
    )
    from statmech_attn.montecarlo.finite_networks.finite_size import (
        FiniteSizes as FiniteSizes,
    )
    from statmech_attn.montecarlo.finite_networks.simulation import (
        simulate as simulate,
        Simulation as Simulation,
    )
    from statmech_attn.montecarlo.finite_networks.simulation_grid import (
        Simulations as Simulations,
        simulations as simulations,
    )
    from statmech_attn.montecarlo.options import (
        CriticalSampling as CriticalSampling,
        SampledRecall as SampledRecall,
        Sampling as Sampling,
    )
    from statmech_attn.montecarlo.posterior_samples import (
        posteriors as posteriors,
        weight_space as weight_space,
    )
    from statmech_attn.montecarlo.posterior_samples.nuts import (
        Sampler as Sampler,
        Transition as Transition,
    )


lazy.attach(__name__)
