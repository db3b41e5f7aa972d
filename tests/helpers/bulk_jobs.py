"""Jobs for tests: small inputs with everything that can go wrong in them, done in this process."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from cige.bulk import Annotator, AnnotatorSettings
from cige.bulk.job import Job

SENTENCES = [
    "罗氏公司总裁林晓岚从巴塞尔飞抵南京市长江大桥。",
    "张桂梅在云南华坪创办女子高中",
    "",
    "😀𠮷羅氏公司在上海",
    'Hello, "world"\tand more',
]


@cache
def annotator() -> Annotator:
    """The bundled model, shared by tests that do not change it."""
    return Annotator.open(AnnotatorSettings())


def lines(n: int) -> str:
    return "".join(f"{SENTENCES[k % len(SENTENCES)]}{k}\n" for k in range(n))


def plan(source: Path, output: Path, **options) -> Job:
    return Job.plan(source, output, AnnotatorSettings(), annotator().versions, **options)


def done(job: Job) -> dict[str, int]:
    """The job, begun and done in this process; its totals."""
    job.begin()
    for part in job.pending():
        job.annotate(annotator(), part)
    return job.finish()


def contents(folder: Path) -> dict[str, str]:
    """The checksum of every file of a folder."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def output_rows(output: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(output.glob("data/*.jsonl")) for line in open(file, encoding="utf-8")]


def rejected_rows(output: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(output.glob("rejected/*")) for line in open(file, encoding="utf-8")]
