"""Dynamical mean-field theory of 1-bit self-attention (arXiv:2406.07247)."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dmft import extensive as extensive
    from statmech_attn.dmft.along_beta.trajectories import (
        along_beta as along_beta,
        NetworkTrajectories as NetworkTrajectories,
        trajectories as trajectories,
    )
    from statmech_attn.dmft.continuous_time import (
        continuous as continuous,
        history as history,
    )
    from statmech_attn.dmft.correlations import (
        correlations as correlations,
        even_correlations as even_correlations,
        from_correlations as from_correlations,
    )
    from statmech_attn.dmft.initial_states import (
        from_checkpoint as from_checkpoint,
        from_random as from_random,
        from_row as from_row,
        from_token as from_token,
        from_window as from_window,
    )
    from statmech_attn.dmft.mean_field import (
        advance as advance,
        jacobian as jacobian,
        OBSERVABLE_LABELS as OBSERVABLE_LABELS,
        OBSERVABLES as OBSERVABLES,
        Observation as Observation,
        observation as observation,
        observe as observe,
        receive as receive,
        step as step,
        TIME as TIME,
        trajectory as trajectory,
    )
    from statmech_attn.dmft.network import (
        clock_period as clock_period,
        contract as contract,
        Network as Network,
        network as network,
        network_attributes as network_attributes,
        PARAMETERS as PARAMETERS,
        Parameters as Parameters,
        parameters as parameters,
        State as State,
        token_overlaps as token_overlaps,
        window as window,
    )
    from statmech_attn.dmft.noise.critical import (
        critical_fluctuations as critical_fluctuations,
        CriticalFluctuations as CriticalFluctuations,
    )
    from statmech_attn.dmft.noise.fluctuations import (
        linear_noise as linear_noise,
        predictability_horizon as predictability_horizon,
        SCORE_LIMIT as SCORE_LIMIT,
    )
    from statmech_attn.dmft.noise.irreversibility import (
        advance_with_entropy as advance_with_entropy,
        empty_window as empty_window,
        entropy_production as entropy_production,
        ENTROPY_UNIT as ENTROPY_UNIT,
        EntropyProduction as EntropyProduction,
        PRODUCTION as PRODUCTION,
        ReversalWindow as ReversalWindow,
    )
    from statmech_attn.dmft.noise.response import (
        Response as Response,
        response as response,
    )
    from statmech_attn.dmft.patterns import (
        cycle as cycle,
        from_matrices as from_matrices,
        KINDS as KINDS,
        load as load,
        PatternFile as PatternFile,
        Patterns as Patterns,
        presets as presets,
        random_independent as random_independent,
        random_segments as random_segments,
        save as save,
        site_classes as site_classes,
    )
    from statmech_attn.dmft.sequential_updating import (
        sequential as sequential,
        stretched as stretched,
    )
    from statmech_attn.dmft.stroboscopic_map import (
        strobe as strobe,
        strobe_point as strobe_point,
    )
    from statmech_attn.dmft.system import system as system
    from statmech_attn.dmft.tangent import TangentMap as TangentMap


lazy.attach(__name__)
