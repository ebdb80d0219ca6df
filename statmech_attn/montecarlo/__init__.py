"""Monte Carlo checks of the theories: finite networks, and samplers of weights."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.montecarlo.finite_networks.collapsed import (
        class_counts as class_counts,
    )
    from statmech_attn.montecarlo.finite_networks.dataset import (
        monte_carlo_dataset as monte_carlo_dataset,
        stationary as stationary,
        VARIABLES as VARIABLES,
    )
    from statmech_attn.montecarlo.finite_networks.extensive import (
        extensive_plan as extensive_plan,
        ExtensivePlan as ExtensivePlan,
        ExtensiveSimulation as ExtensiveSimulation,
        Overlaps as Overlaps,
        simulate_extensive as simulate_extensive,
    )
    from statmech_attn.montecarlo.finite_networks.extensive_samples import (
        ExtensiveSamples as ExtensiveSamples,
    )
    from statmech_attn.montecarlo.finite_networks.finite_size import (
        FiniteSizes as FiniteSizes,
    )
    from statmech_attn.montecarlo.finite_networks.run_blocks import (
        layout as layout,
        Moments as Moments,
        Simulator as Simulator,
    )
    from statmech_attn.montecarlo.finite_networks.simulation import (
        simulate as simulate,
        Simulation as Simulation,
        TimeAverages as TimeAverages,
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
    from statmech_attn.montecarlo.posterior_samples.weight_sampling import (
        sample_weights as sample_weights,
        WeightDraws as WeightDraws,
    )


lazy.attach(__name__)
