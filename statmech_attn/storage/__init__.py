"""HDF5 files that describe themselves and survive a kill (docs/hdf5.md)."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.storage import plain, toml as toml
    from statmech_attn.storage.changes import differences, study_differences
    from statmech_attn.storage.columns import Column as Column
    from statmech_attn.storage.machine import environment
    from statmech_attn.storage.provenance import (
        now as now,
        origin as origin,
        with_provenance,
    )
    from statmech_attn.storage.reading import (
        Info as Info,
        info as info,
        opened as opened,
        read as read,
        require_hdf5,
        stored_seal,
        VariableInfo as VariableInfo,
    )
    from statmech_attn.storage.schema import (
        same_study,
        SCHEMA_VERSION,
        SEAL,
        seal,
        SEAL_LENGTH,
        StorageError as StorageError,
        study_digest as study_digest,
    )
    from statmech_attn.storage.writers import tables as tables
    from statmech_attn.storage.writers.blocks import BlockFolder, BlockMemory
    from statmech_attn.storage.writers.replacing import (
        begins,
        replaced as replaced,
        require_new,
        require_replaceable,
        unwritable,
        write_text,
    )
    from statmech_attn.storage.writers.tables import table as table
    from statmech_attn.storage.writers.writing import (
        check_output as check_output,
        check_place,
        require_no_input,
        reseal as reseal,
        write as write,
    )


lazy.attach(__name__)
