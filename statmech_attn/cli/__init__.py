"""The `statmech-attn` command."""

from statmech_attn.cli.main import app


__all__ = ["app"]
