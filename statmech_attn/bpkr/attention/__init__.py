"""Attention of fixed heads, given or drawn, and networks with given weights."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr.attention import attention_weights as attention_weights
    from statmech_attn.bpkr.attention.attention import (
        head_names as head_names,
        Heads as Heads,
    )
    from statmech_attn.bpkr.attention.attention_weights import Attention as Attention
    from statmech_attn.bpkr.attention.networks import (
        effective_weights as effective_weights,
    )


lazy.attach(__name__, checks=False)
