"""Rewrite the pages that are read from the declarations, one for every kind.

Keys of study files are in docs/keys, variables of result files in docs/hdf5.  The pages
keys.md and hdf5.md list them between two marks, with what several kinds share.
"""

from pathlib import Path

from statmech_attn.studies import reference


DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
PARTS = {
    "keys": (reference.keys, "Keys of studies of kind"),
    "hdf5": (reference.variables, "Variables of files of kind"),
}


def written() -> dict[str, str]:
    """What documents should hold, by their path from docs."""
    result = {}
    for part, (tables, title) in PARTS.items():
        pages = tables()
        shared = pages.pop("", "")
        for kind, text in pages.items():
            result[f"{part}/{kind}.md"] = f"# {title} {kind}\n\n{text}"
        links = "\n".join(f"* [{kind}]({part}/{kind}.md)" for kind in pages)
        tree = "\n".join(f"{part}/{kind}" for kind in pages)
        before, _, rest = (DOCS / f"{part}.md").read_text("utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        hidden = f"```{{toctree}}\n:hidden:\n\n{tree}\n```"
        inner = "\n\n".join(filter(None, (links, hidden, shared.rstrip())))
        result[f"{part}.md"] = f"{before}{BEGIN}\n{inner}\n\n{END}{after}"
    return result


if __name__ == "__main__":
    for document, text in written().items():
        path = DOCS / document
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
