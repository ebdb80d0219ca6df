"""Rewrite the parts of the documentation that are read from the declarations.

They stand between two marks: all keys of study files in docs/keys.md, all variables of
result files in docs/hdf5.md.
"""

from pathlib import Path

from statmech_attn.studies import reference


DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
PARTS = {"keys.md": reference.keys, "hdf5.md": reference.variables}


def rewritten(name: str) -> str:
    """What a document should hold."""
    before, _, rest = (DOCS / name).read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{PARTS[name]()}\n{END}{after}"


if __name__ == "__main__":
    for document in PARTS:
        (DOCS / document).write_text(rewritten(document), "utf-8")
