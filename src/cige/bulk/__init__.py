"""Bulk annotation: add entities to Arrow batches, and to files in jobs that can be resumed after they are killed.

Adapters for Ray Data and Spark are in `cige.bulk.ray_data` and `cige.bulk.spark_sql`. The Arrow functions require
pyarrow (`pip install "cige[documents]"`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.bulk.annotator import Annotator, AnnotatorSettings
    from cige.bulk.arrow import annotate_batch, output_schema

__all__ = ["Annotator", "AnnotatorSettings", "annotate_batch", "output_schema"]

__getattr__ = imported_on_use(
    __name__, annotator=["Annotator", "AnnotatorSettings"], arrow=["annotate_batch", "output_schema"]
)
