"""Documents: texts with spans, read from and written to the files of other tools.

from cige.data.documents import read_documents, write_documents
write_documents("tasks.json", read_documents("labelled.jsonl"), format="label-studio")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.data.documents.document import Document, ReadingOptions
    from cige.data.documents.formats import FORMATS, read_documents, write_documents

__all__ = ["FORMATS", "Document", "ReadingOptions", "read_documents", "write_documents"]

__getattr__ = imported_on_use(
    __name__, document=["Document", "ReadingOptions"], formats=["FORMATS", "read_documents", "write_documents"]
)
