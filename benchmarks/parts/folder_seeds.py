"""Sound folders of every kind, small enough to be opened hundreds of times a second, and what is done with each.

They are written once, with PyTorch and the models of tests/; reading them needs neither, apart from checkpoints. A
reader returns how many texts it read, and raises what is wrong.
"""

import json
import math
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.parts.odd_texts import ROOT

for part in ("tests/helpers", "tests/lattice_bert/helpers"):
    sys.path.append(str(ROOT / part))

WORDS = ["北京", "上海", "南京", "南京市", "市长", "长江", "长江大桥", "中国", "中国银行", "公司", "罗氏公司", "ABC"]
MODELS = ("flat", "flat-deep", "flat-bias", "flat-int8", "flat-stored", "soft-lexicon", "soft-counts")
WITHOUT_TORCH = (*MODELS, "lexicon", "lexicon-stored", "vectors", "vectors-aligned", "vectors-lexicon", "data")


def write_sound(folder: Path) -> None:
    """Write a folder of each kind into a new folder."""
    import tiny_corpus
    import torch
    import toy

    torch.set_num_threads(1)
    _write_models(folder)
    _write_lexicons(folder)
    made = tiny_corpus.data_folder(folder / "making", text=tiny_corpus.corpus_text(12), shard_size=400, held_out=4)
    made.rename(folder / "data")
    shutil.rmtree(folder / "making")
    run = toy.trainer(folder / "checkpoint", n_steps=6, n_epochs=None, every="3 steps")
    run.run(toy.Objective(n_epochs=None, n_steps=6), stop_at=0.0)


def _stored_from(n_words: int) -> Any:
    """From how many words on their index is stored in a folder."""
    from cige.lexicon import base_words

    return mock.patch.object(base_words, "STORED_FROM", n_words or base_words.STORED_FROM)


def _write_models(folder: Path) -> None:
    import tiny

    from cige.entities.calibration import Calibration
    from cige.models.soft_lexicon import SoftLexiconConfig

    base = replace(tiny.CONFIG, bigram_backoff=True, char_words=True)
    named = replace(base, gazetteers=True)
    soft = SoftLexiconConfig(lstm_width=12, use_bigrams=True)
    deep = replace(base, n_layers=2, max_distance=4, mask_self_matched=True, n_heads=2)
    smoothed = {"config": replace(soft, weighting="smoothed"), "architecture": "soft_lexicon"}
    made: dict[str, tuple[dict[str, Any], str | None]] = {
        "flat": ({"config": named, "typed": True}, None),
        "flat-deep": ({"config": deep}, "float16"),
        "flat-bias": ({"config": replace(base, position_score="bias", head_width=6, distances=("hh", "tt"))}, None),
        "flat-int8": ({"config": replace(named, attention_bias=True, fusion_bias=True, n_layers=2)}, "int8"),
        "flat-stored": ({"config": base, "scheme": "BIO"}, "int8"),
        "soft-lexicon": (smoothed, None),
        "soft-counts": ({"config": soft, "architecture": "soft_lexicon", "scheme": "BIOES"}, "int8"),
    }
    whole = Calibration(((0.0, 0.0), (1.0, 1.0)), {0.5: 0.2, 0.95: 0.01}, {"LOC": {0.9: 0.05}}, 9)
    both = {"fine": whole, "coarse": whole}
    facts: dict[str, Any] = {"calibration": both, "domains": {"posts": {"fine": whole}}, "parents": {"LOC": "PLACE"}}
    facts |= {"max_lengths": {"LOC": 3, "PER": 4}, "silent": frozenset(["ORG"]), "set_apart": 4, "wide_commas": True}
    for name, (options, rows) in made.items():
        model = tiny.model(**options)
        model = replace(model, label_facts=replace(model.label_facts, **facts))
        model.lexicon.add("张三", label="PER", mode="force")
        model.lexicon.add("罗氏")
        model.lexicon.add("长江", "的", mode="block")
        model.lexicon.add("公司", mode="block_exact")
        model.lexicon.add("a", label="ORG", mode="force")
        model.lexicon.add("重庆", label="LOC", mode="type")
        with _stored_from(1 if name.endswith("stored") else 0):
            model.save(folder / name, table_dtype=rows)


def _write_lexicons(folder: Path) -> None:
    from cige.lexicon.convert_vectors import build_with_vectors, convert_vectors
    from cige.lexicon.lexicon import Lexicon

    lexicon = Lexicon.from_words(WORDS, counts=range(1, len(WORDS) + 1))
    lexicon.add("阿拉善贺兰草", label="COMPANY", mode="force")
    lexicon.remove("南京")
    lexicon.save(folder / "lexicon")
    text = folder / "vectors.txt"
    rows = "".join(f"{word} {k} {k + 0.5} -{k}\n" for k, word in enumerate(WORDS))
    text.write_text(f"{len(WORDS)} 3\n{rows}", encoding="utf-8")
    with _stored_from(1):
        lexicon.save(folder / "lexicon-stored")
        build_with_vectors(text, folder / "vectors-lexicon")
    convert_vectors(text, folder / "vectors")
    convert_vectors(text, folder / "vectors-aligned", lexicon=lexicon)
    text.unlink()


def reader(name: str) -> Callable[[Path, Sequence[str], int], int]:
    """What reads the folder of a name, some texts with it, and how by a number."""
    kinds = {"lexicon": _read_lexicon, "vectors": _read_vectors, "data": _read_data, "checkpoint": _read_checkpoint}
    return _read_model if name in MODELS else kinds[name.partition("-")[0]]


def _read_model(folder: Path, texts: Sequence[str], case: int) -> int:
    from cige.api import NER
    from cige.runtime.native_model import NativeModel

    native = NativeModel.load(folder, precision="auto" if case % 4 else "float32")
    check_model(native, texts, case)
    if case % 5 == 0:
        portable = NativeModel.load(folder, kernels="off")
        check_model(portable, texts[:2], case)
        if native.precision == "float32":
            _compare(native, portable, texts[0])
    if case % 7 == 0:
        NER(native).analyze(texts[-1])
    return len(texts)


def check_model(model: Any, texts: Sequence[str], case: int) -> None:
    """Ask for the entities of texts in several ways; every answer must be one that the text and the model allow."""
    from cige.api import NER
    from cige.errors import CigeError

    ner = NER(model)
    known = {*ner.labels, *ner.label_facts.parents.values(), *(word.label for word in ner.lexicon.user_entries)}
    options: list[dict[str, Any]] = [{}, {"types": "coarse"}, {"min_score": 0.3}, {"recall": 0.9}]
    chosen = [*options, {"labels": ner.labels}][case % 5]
    try:
        found = ner(list(texts), **chosen, words={"罗氏公司": "ORG"} if case % 2 else ())
    except CigeError:
        if not chosen:
            raise
        found = ner(list(texts))  # a calibration that does not reach this recall, for example
    for text, entities in zip(texts, found, strict=True):
        for one in entities:
            assert 0 <= one.start < one.end <= len(text) and one.label in known, (text, one)
            assert math.isfinite(one.score) and 0 <= one.score <= 1, (text, one)


def _compare(native: Any, portable: Any, text: str) -> None:
    """Both forms compute the same as long as the numbers are those of a network."""
    from cige.folders.mapped_arrays import arrays_in
    from cige.lattice.lattice import build_lattice
    from cige.text.normalize import normalize

    lattice = build_lattice(normalize(text)[:60], native.lexicon.snapshot())
    with np.errstate(all="ignore"):
        one, other = (model.emissions([lattice]) for model in (native, portable))
    top = float(np.abs(other).max(initial=0))
    weights = (array for array in arrays_in(native.weights_file).values() if array.dtype.kind == "f")
    largest = max((float(np.abs(array).max(initial=0)) for array in weights), default=0)
    if np.isfinite(top) and largest < 100:
        assert np.allclose(one, other, atol=1e-3 * max(1.0, top), rtol=1e-2), float(np.abs(one - other).max())


def _read_lexicon(folder: Path, texts: Sequence[str], case: int) -> int:
    from cige.errors import LexiconError
    from cige.lexicon.lexicon import Lexicon
    from cige.lexicon.matcher import Matcher, PythonWalk
    from cige.text.normalize import normalize

    lexicon = Lexicon.load(folder)
    n_words = len(list(lexicon))
    for text in texts:
        for start, end, number in lexicon.match(text).tolist():
            assert 0 <= start < end <= len(text) and number >= 0, (text, start, end, number)
            assert isinstance(lexicon.word(number), str)
            if number < n_words:
                lexicon.count(number)
        lexicon.snapshot().rules(text)
        slow: Any = Matcher(lexicon._base.matcher.trie)
        try:
            expected = PythonWalk(slow.trie)(normalize(text))
        except LexiconError:
            continue
        assert np.array_equal(slow.find(normalize(text)), expected), text
    repr(lexicon)
    return len(texts)


def _read_vectors(folder: Path, texts: Sequence[str], case: int) -> int:
    from cige.lexicon.vectors import VectorTable

    table = VectorTable.load(folder)
    rows = table.rows([*WORDS, *texts, *(text[:2] for text in texts)])
    assert rows.min() >= -1 and rows.max() < len(table)
    assert table.vectors[rows[rows >= 0]].shape == (int((rows >= 0).sum()), table.width)
    list(table.words)
    return 0


def _read_data(folder: Path, texts: Sequence[str], case: int) -> int:
    from cige.lattice_bert.pretraining.data import open_data
    from cige.lattice_bert.pretraining.dataset import InstanceConfig, InstanceSet, TokenIds
    from cige.lattice_bert.pretraining.packing import Room

    data = open_data(folder, check_contents=case % 2 == 0)
    config = InstanceConfig(sentence_task="three_way" if case % 3 == 0 else "order")
    for shards in (data.train, data.held_out):
        ids = TokenIds.of(data.vocabulary, use_words=True)
        instances = InstanceSet(shards, config=config, ids=ids, room=Room(24, 40), seed=case)
        for number in range(min(12, len(instances.n_tokens(0)) if len(shards) else 0)):
            made = instances.masked(0, number)
            assert made.row.ids.min() >= 0 and made.row.ids.max() < len(data.vocabulary)
    return 0


def _read_checkpoint(folder: Path, texts: Sequence[str], case: int) -> int:
    import toy

    run = toy.trainer(folder, n_steps=6, n_epochs=None)
    run.resume()
    json.dumps(run.state.step)
    return 0
