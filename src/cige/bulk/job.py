"""Job: annotate files part by part and write the results to a folder; killed jobs can be resumed.

    OUTPUT/manifest.json           model, lexicon, precision, settings, input files with checksums; written first
    OUTPUT/data/part-000000.jsonl  the rows of a part with their entities
    OUTPUT/rejected/...            the rows that could not be processed, with the reason; only if there are any
    OUTPUT/commits/...             the record of each finished part, with versions of model and lexicon; written last

Each file is written completely or not at all. A part is finished when its commit exists; the files of a part that a
killed worker left unfinished are written again, with the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from cige.bulk.annotator import ENTITY_FIELDS, Annotation, Annotator, AnnotatorSettings
from cige.bulk.fingerprint import Versions
from cige.bulk.inputs import PIECE_ROWS, InputFile, Part, changed_files, columns_of, find_files, parts_of, scan
from cige.bulk.records import PartRecord, read_record
from cige.bulk.rows import (
    OUTPUTS,
    SOURCE_COLUMNS,
    Row,
    chosen_rows,
    format_rows,
    parquet_table,
    read_rows,
    reason_not_to_write,
    source_clash,
)
from cige.errors import CigeError, DataError, ModelError
from cige.folders.atomic import atomic_file, write_atomically
from cige.folders.kinds import ANNOTATION
from cige.folders.manifest import MANIFEST, kind_of, sha256
from cige.json_text import JsonObject, json_bytes, to_json
from cige.lexicon.word_versions import version_of

VERSION = 1
# What the manifests of older versions, which do not have these facts, mean.
_UNSAID: JsonObject = {"with_source": False, "entity_fields": ["start", "end", "label", "text", "score"]}
# Settings that do not affect rows; models, words and the precision that "auto" chose are compared by version.
_CHANGES_NO_ROW = {"batch_size", "device", "lexicon_add", "model", "precision"}


@dataclass(frozen=True)
class Job:
    """The input, settings and output of a job; plain values, which every engine can send.

    Attributes:
        source: a file, or a folder with files of the format `form`.
        output: the output folder.
        form, to: the formats of input and output.
        settings: the settings of the Annotator.
        text_column, entities_column: column names; a line of text is treated as a column with that name.
        part_rows: rows per part, or None to choose it by the number of rows.
        with_source: whether rows get SOURCE_COLUMNS, the file and the number of the row in it.
        entity_fields: with `to` "parquet", the fields of an entity: those with which the job was started, so that all
            its files have one schema.
        files, parts: the input files and their parts.
        versions: the versions of model and lexicon, and the precision.
    """

    source: Path
    output: Path
    form: str
    to: str
    settings: AnnotatorSettings
    text_column: str = "text"
    entities_column: str = "entities"
    part_rows: int | None = None
    with_source: bool = True
    entity_fields: tuple[str, ...] = ENTITY_FIELDS
    files: tuple[InputFile, ...] = ()
    parts: tuple[Part, ...] = field(default=(), repr=False)
    versions: Versions = field(default_factory=lambda: Versions("", ""))

    @classmethod
    def plan(
        cls,
        source: Path,
        output: Path,
        settings: AnnotatorSettings,
        versions: Versions,
        *,
        form: str | None = None,
        to: str | None = None,
        text_column: str = "text",
        entities_column: str = "entities",
        part_rows: int | None = None,
        with_source: bool = True,
    ) -> Job:
        """Find the input files and divide them into parts; nothing is written.

        Raises:
            DataError: the input cannot be read, or cannot be written in the requested format.
        """
        if source.is_dir() and output.resolve().is_relative_to(source.resolve()):
            raise DataError(f"{output} is inside the input folder, whose files are read; expected a folder elsewhere")
        names, form = find_files(source, form)
        if (to := to or OUTPUTS[form][0]) not in OUTPUTS[form]:
            raise DataError(f"{form} can be written as {', '.join(OUTPUTS[form])}; given --to {to}")
        scanned = [scan(source / name, name, form, part_rows or PIECE_ROWS) for name in names]
        files = [file for file, _ in scanned]
        for file in files:
            columns = columns_of(source / file.name, file, form)
            if columns and text_column not in columns:
                has = f"it has {', '.join(columns)}; name one by --text-column"
                raise DataError(f"{file.name or source}: no column {text_column!r}; {has}")
            if with_source and (clash := source_clash(columns)):
                raise DataError(f"{file.name or source}: {clash}")
        parts = parts_of(files, [pieces for _, pieces in scanned], part_rows)
        job = cls(source, output, form, to, settings, text_column, entities_column, part_rows, with_source)
        if begun := _manifest_of(output):
            fields = begun.get("entity_fields", _UNSAID["entity_fields"])
            known = [name for name in ENTITY_FIELDS if isinstance(fields, list) and name in fields]
            job = replace(job, entity_fields=tuple(known) or ENTITY_FIELDS)  # others are refused with what else differs
        return replace(job, files=tuple(files), parts=tuple(parts), versions=versions)

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.parts)

    def without_parts(self) -> Job:
        """The same job for workers, which are given their parts one by one."""
        return replace(self, parts=())

    def begin(self) -> bool:
        """Write the manifest, or check that an existing one is of this job; returns whether parts may be finished.

        Raises:
            DataError: the folder contains something else, or the annotation of another input or with other settings.
            ModelError: the job was started with another model, lexicon or precision.
        """
        path = self.output / MANIFEST
        if kind_of(self.output) != ANNOTATION:
            if self.output.exists() and (not self.output.is_dir() or {*self.output.iterdir()} - {*self._leftovers()}):
                raise DataError(f"{self.output}: there already, and no annotation of cige; give a new folder")
            self.output.mkdir(parents=True, exist_ok=True)
            self._write(path, self._facts() | {"finished": False})
            return False
        self._check(json.loads(path.read_text(encoding="utf-8")))
        self._remove_leftovers()
        return True

    def pending(self, *, verify: bool = False) -> list[Part]:
        """The parts that still have to be annotated, including those whose file is missing or was cut short.

        Args:
            verify: whether to compare the checksums of all files, which are read for that, and not only their sizes.
        """
        return [part for part in self.parts if self.commit_of(part, verify=verify) is None]

    def commit_of(self, part: Part, *, verify: bool = False) -> PartRecord | None:
        """The record of a finished part; None for a part that has to be annotated."""
        record = read_record(self._place("commits", part, "json"), part.number)
        if record is None:
            return None
        data = self._place("data", part, self.to)
        if not data.is_file() or data.stat().st_size != record["bytes"]:
            return None
        return None if verify and sha256(data) != record["sha256"] else record

    def annotate(self, annotator: Annotator, part: Part) -> PartRecord:
        """Annotate a part and commit it; returns its record. Repeating it writes the same files.

        Raises:
            ModelError: the annotator has another model, lexicon or precision than the job.
            DataError: the input cannot be read.
        """
        if annotator.versions != self.versions:
            differs = annotator.versions.compared_with(self.versions)
            if annotator.versions.precision != self.versions.precision:
                raise ModelError(f"a worker {differs}: processors of several kinds; give --precision float32")
            raise ModelError(f"a worker {differs} while the job runs; restore it")
        file = next(file for file in self.files if file.name == part.file)
        rows = read_rows(self.source, file, part, self.form, self.text_column)
        annotations = iter(annotator.annotate([row.values[self.text_column] for row in rows if row.error is None]))
        pairs = [(row, next(annotations) if row.error is None else Annotation(None, row.error)) for row in rows]
        pairs = [(row, self._writable(row, annotation)) for row, annotation in pairs]
        annotated = [(row, a.entities) for row, a in pairs if a.entities is not None]
        rejected = [(row, a.error) for row, a in pairs if a.entities is None]
        record: PartRecord = {
            "part": part.number,
            "file": part.file,
            "first_row": part.first_row,
            "rows": len(annotated),
            "rejected": len(rejected),
            "entities": sum(len(entities) for _, entities in annotated),
            **self._versions(),
        }
        if rejected:
            lines = [to_json(self._rejection(row, part, error), ensure_ascii=True) + "\n" for row, error in rejected]
            write_atomically(self._place("rejected", part, "jsonl"), "".join(lines))
        data = self._place("data", part, self.to)
        with atomic_file(data) as aside:
            self._write_data(aside, part, file, annotated)
            record["bytes"], record["sha256"] = aside.stat().st_size, sha256(aside)
        self._write(self._place("commits", part, "json"), record)
        return record

    def finish(self) -> dict[str, int]:
        """Write the totals to the manifest after all parts are finished; returns the totals.

        Raises:
            CigeError: a part is missing.
        """
        records = [self.commit_of(part) for part in self.parts]
        if None in records:
            raise CigeError(f"{self.output}: {records.count(None)} parts are not done; run the same command again")
        self._remove_leftovers()  # of workers that were killed while the job continued
        totals = {name: sum(record[name] for record in records if record) for name in ("rows", "rejected", "entities")}
        self._write(self.output / MANIFEST, self._facts() | {"finished": True} | totals)
        return totals

    def as_told(self, error: CigeError | OSError) -> CigeError:
        """The error of a worker as a user is told of it, with the path that could not be read or written."""
        if isinstance(error, CigeError):
            return error
        return CigeError(f"{error.filename or self.output}: {error.strerror or error}")

    def _writable(self, row: Row, annotation: Annotation) -> Annotation:
        if annotation.entities is None:
            return annotation
        reason = reason_not_to_write(row.values, self.to, self.entities_column, with_source=self.with_source)
        return annotation if reason is None else Annotation(None, reason)

    def _rejection(self, row: Row, part: Part, error: str | None) -> dict[str, object]:
        raw = row.raw if row.raw is not None else row.values.get(self.text_column)
        try:
            to_json(raw)
        except TypeError:
            raw = repr(raw)
        return {"file": part.file or self.source.name, "row": row.number, "reason": error, "raw": raw}

    def _write_data(self, path: Path, part: Part, file: InputFile, annotated: list[tuple[Row, Any]]) -> None:
        columns = list(file.header) or [self.text_column]
        sources = [self._source(part, row) for row, _ in annotated]
        if self.to != "parquet":
            rows = [
                row.values | source | {self.entities_column: entities}
                for (row, entities), source in zip(annotated, sources, strict=True)
            ]
            added = SOURCE_COLUMNS if self.with_source else ()
            path.write_bytes(format_rows(rows, self.to, [*columns, *added], self.entities_column))
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        from cige.bulk.arrow import entities_array

        if self.form == "parquet":
            table = parquet_table(self.source / file.name, part)
            table = chosen_rows(table, [row.number - part.first_row for row, _ in annotated])
        else:
            table = pa.table(
                {name: pa.array([row.values[name] for row, _ in annotated], pa.string()) for name in columns}
            )
        if self.with_source:
            for column, kind in zip(SOURCE_COLUMNS, (pa.string(), pa.int64()), strict=True):
                table = table.append_column(column, pa.array([source[column] for source in sources], kind))
        entities = entities_array([Annotation(of_row) for _, of_row in annotated], self.entity_fields)
        pq.write_table(table.append_column(self.entities_column, entities), path, compression="zstd")

    def _source(self, part: Part, row: Row) -> dict[str, object]:
        """The values of SOURCE_COLUMNS, if rows have them."""
        if not self.with_source:
            return {}
        name = (part.file or self.source.name).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if self.to == "tsv":  # which cannot hold these
            name = re.sub(r"[\t\r\n]", " ", name)
        return dict(zip(SOURCE_COLUMNS, (name, row.number), strict=True))

    def _leftovers(self) -> list[Path]:
        """The temporary files of processes that were killed while writing."""
        return [*self.output.glob(f".{MANIFEST}.*.part"), *self.output.glob("*/.*.part")]

    def _remove_leftovers(self) -> None:
        for left in self._leftovers():
            left.unlink(missing_ok=True)

    def _place(self, folder: str, part: Part, suffix: str) -> Path:
        return self.output / folder / f"part-{part.number:06d}.{suffix}"

    def _facts(self) -> JsonObject:
        settings = {k: v for k, v in asdict(self.settings).items() if k not in _CHANGES_NO_ROW}
        for name, default in (("names", None), ("nested", True)):  # as in jobs that began before there was this setting
            if settings[name] is default:
                del settings[name]
        facts = {
            "kind": ANNOTATION,
            "version": VERSION,
            "files": {},
            "input": [asdict(file) for file in self.files],
            "format": self.form,
            "to": self.to,
            "text_column": self.text_column,
            "entities_column": self.entities_column,
            "n_parts": len(self.parts),
            "part_rows": self.part_rows,
            "with_source": self.with_source,
            "settings": settings,
        }
        if self.to == "parquet":
            facts["entity_fields"] = self.entity_fields
        return json.loads(to_json(facts | self._versions()))  # as after reading: tuples are lists

    def _versions(self) -> PartRecord:
        names = [name for path in self.settings.lexicon_add if (name := version_of(path)) is not None]
        return cast(PartRecord, {**self.versions.facts(), "lexicon_versions": names})

    def _check(self, there: JsonObject) -> None:
        if there.get("version") != VERSION:
            raise DataError(f"{self.output}: written by another version of cige; give a new folder")
        known = {name: str(there.get(name)) for name in ("model", "lexicon", "precision")}
        before = Versions(**known, names=there.get("names", self.versions.names))  # older versions did not write it
        if before != self.versions:
            raise ModelError(
                f"{self.output}: {self.versions.compared_with(before)}; one folder holds the annotation of one model "
                "and one lexicon in one precision: give those again to go on, or a new folder to begin anew"
            )
        for name, now in self._facts().items():
            given = there.get(name, now if name == "names" else _UNSAID.get(name))
            if name == "settings" and isinstance(given, dict):  # older versions wrote more of them
                given = {key: value for key, value in given.items() if key not in _CHANGES_NO_ROW}
            if given != now:
                if name == "settings" and isinstance(given, dict):
                    name = next(key for key in {**now, **given} if given.get(key) != now.get(key))
                    given, now = given.get(name), now.get(name)
                what = changed_files(given or (), now) if name == "input" else f"{name} was {given!r}, now {now!r}"
                raise DataError(f"{self.output}: begun with another input or other options ({what}); give a new folder")

    @staticmethod
    def _write(path: Path, facts: Mapping[str, object]) -> None:
        with atomic_file(path) as aside:
            aside.write_bytes(json_bytes(facts, indent=1, sort_keys=True) + b"\n")


def versions_begun_with(output: Path) -> list[str]:
    """The word versions (see lexicon.word_versions) with which the job of a folder was started; empty without a job."""
    return list(_manifest_of(output).get("lexicon_versions", []))


def _manifest_of(output: Path) -> JsonObject:
    """The manifest of the job of a folder; empty without a job."""
    return json.loads((output / MANIFEST).read_text(encoding="utf-8")) if kind_of(output) == ANNOTATION else {}
