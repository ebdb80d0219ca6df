"""`python -m statmech_attn.cli` is `statmech-attn`."""

from statmech_attn.cli.main import app


app(prog_name="statmech-attn")
