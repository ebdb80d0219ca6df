"""`python -m statmech_attn.cli` is `statmech-attn`."""

from statmech_attn.scan import signals


def main() -> None:
    """Run the command, which a signal ends from here on, in its imports too."""
    with signals.ending():
        from statmech_attn.cli.main import app

        app(prog_name="statmech-attn")


if __name__ == "__main__":
    main()
