"""HDF5 files that describe themselves and survive a kill (docs/hdf5.md)."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.storage import plain, tables, toml
    from statmech_attn.storage.blocks import BlockFolder, BlockMemory
    from statmech_attn.storage.changes import (
        differences,
        in_one_line,
        study_differences,
    )
    from statmech_attn.storage.columns import Column
    from statmech_attn.storage.machine import environment
    from statmech_attn.storage.provenance import now, origin, with_provenance
    from statmech_attn.storage.reading import (
        Info,
        info,
        opened,
        read,
        require_hdf5,
        stored_seal,
        VariableInfo,
    )
    from statmech_attn.storage.replacing import (
        begins,
        replaced,
        require_new,
        require_replaceable,
        unwritable,
        write_text,
    )
    from statmech_attn.storage.schema import (
        same_study,
        SCHEMA_VERSION,
        SEAL,
        seal,
        SEAL_LENGTH,
        StorageError,
        study_digest,
    )
    from statmech_attn.storage.tables import table
    from statmech_attn.storage.writing import (
        check_output,
        check_place,
        require_no_input,
        write,
    )


__all__ = [
    "begins",
    "BlockFolder",
    "BlockMemory",
    "check_output",
    "check_place",
    "Column",
    "differences",
    "environment",
    "in_one_line",
    "Info",
    "info",
    "now",
    "opened",
    "origin",
    "plain",
    "read",
    "replaced",
    "require_hdf5",
    "require_new",
    "require_no_input",
    "require_replaceable",
    "same_study",
    "SCHEMA_VERSION",
    "SEAL",
    "seal",
    "SEAL_LENGTH",
    "StorageError",
    "stored_seal",
    "study_differences",
    "study_digest",
    "table",
    "tables",
    "toml",
    "unwritable",
    "VariableInfo",
    "with_provenance",
    "write",
    "write_text",
]
lazy.attach(__name__)
