"""Dynamical mean-field theory of 1-bit self-attention (arXiv:2406.07247)."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dmft import extensive
    from statmech_attn.dmft.continuous_time import continuous, history
    from statmech_attn.dmft.correlations import (
        Correlations,
        correlations,
        even_correlations,
        from_correlations,
    )
    from statmech_attn.dmft.fluctuations import (
        linear_noise,
        noise_dimension,
        noise_start,
        noise_steps,
        NoiseBand,
        OBSERVABLE_LABELS,
        OBSERVABLES,
        predictability_horizon,
        SCORE_LIMIT,
    )
    from statmech_attn.dmft.mean_field import (
        advance,
        jacobian,
        Observation,
        observation,
        observe,
        receive,
        step,
        trajectory,
    )
    from statmech_attn.dmft.network import (
        clock_period,
        contract,
        from_checkpoint,
        from_random,
        from_row,
        from_token,
        from_window,
        Network,
        network,
        network_attributes,
        network_digest,
        next_means,
        PARAMETERS,
        Parameters,
        parameters,
        State,
        token,
        token_overlaps,
        window,
    )
    from statmech_attn.dmft.patterns import (
        cycle,
        from_matrices,
        KINDS,
        load,
        PatternFile,
        Patterns,
        presets,
        random_independent,
        random_segments,
        save,
        site_classes,
    )
    from statmech_attn.dmft.sequential_updating import sequential, stretched
    from statmech_attn.dmft.stroboscopic_map import (
        strobe,
        strobe_point,
        StroboscopicMap,
    )
    from statmech_attn.dmft.system import system
    from statmech_attn.dmft.tangent import TangentMap
    from statmech_attn.dmft.trajectories import (
        along_beta,
        NetworkTrajectories,
        trajectories,
    )


__all__ = [
    "advance",
    "along_beta",
    "clock_period",
    "continuous",
    "contract",
    "Correlations",
    "correlations",
    "cycle",
    "even_correlations",
    "extensive",
    "from_checkpoint",
    "from_correlations",
    "from_matrices",
    "from_random",
    "from_row",
    "from_token",
    "from_window",
    "history",
    "jacobian",
    "KINDS",
    "linear_noise",
    "load",
    "Network",
    "network",
    "network_attributes",
    "network_digest",
    "NetworkTrajectories",
    "next_means",
    "noise_dimension",
    "noise_start",
    "noise_steps",
    "NoiseBand",
    "OBSERVABLE_LABELS",
    "OBSERVABLES",
    "Observation",
    "observation",
    "observe",
    "PARAMETERS",
    "Parameters",
    "parameters",
    "PatternFile",
    "Patterns",
    "predictability_horizon",
    "presets",
    "random_independent",
    "random_segments",
    "receive",
    "save",
    "SCORE_LIMIT",
    "sequential",
    "site_classes",
    "State",
    "step",
    "stretched",
    "strobe",
    "strobe_point",
    "StroboscopicMap",
    "system",
    "TangentMap",
    "token",
    "token_overlaps",
    "trajectories",
    "trajectory",
    "window",
]
lazy.attach(__name__)
