"""Labels of the parameters and observables of an attention network."""

from statmech_attn.labels import Variable, Variables


PARAMETERS = Variables(
    Variable("beta", "", "inverse temperature of the output", "1", "β"),
    Variable("gamma", "", "inverse temperature of attention", "1", "γ"),
    Variable("epsilon", "", "weight of the positional part", "1", "ε"),
    Variable("redrawn", "", "probability with which a spin is redrawn", "1", "Δ"),
)
OBSERVABLE_LABELS = {  # words and symbol
    "A": ("attention", "A"),
    "m_o_se": ("semantic output overlap", "m^{o,SE}"),
    "m_v": ("value overlap", "m^v"),
    "m_q": ("query overlap", "m^q"),
    "m_k": ("key overlap", "m^k"),
}
