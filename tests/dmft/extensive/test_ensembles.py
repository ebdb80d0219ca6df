"""Ensembles: what tells them apart in a file."""

from statmech_attn.dmft import extensive


def test_ensembles_are_told_apart_by_their_words():
    every = [extensive.cycle(), extensive.identical(), extensive.independent()]
    every += [extensive.correlated(ov=0.5), extensive.correlated(oq=0.5)]
    assert len({ensemble.description for ensemble in every}) == 5
