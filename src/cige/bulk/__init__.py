"""Bulk annotation: an Arrow batch in, the same batch with entities out; jobs over files that survive being killed.

Adapters for Ray Data and Spark are in `cige.bulk.ray_data` and `cige.bulk.spark_sql`. The Arrow parts need pyarrow
(`pip install "cige[documents]"`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.bulk.annotator import Annotator, AnnotatorSettings
    from cige.bulk.arrow import annotate_batch, output_schema

__all__ = ["Annotator", "AnnotatorSettings", "annotate_batch", "output_schema"]

__getattr__ = imported_on_use(
    __name__,
    {
        "Annotator": "annotator",
        "AnnotatorSettings": "annotator",
        "annotate_batch": "arrow",
        "output_schema": "arrow",
    },
)
