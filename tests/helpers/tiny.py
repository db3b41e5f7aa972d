"""A model small enough to build and train within a test run, on sentences of our own."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import torch

from cige.data.batch import collate
from cige.data.components import ComponentTable
from cige.data.sentence import Sentence, Span
from cige.data.tags import spans_to_tags
from cige.data.user_words import UserWordRegime, simulate_user_words
from cige.data.vocabulary import char_codes
from cige.entities.entity import Entity
from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import with_lists
from cige.lexicon.vectors import VectorTable
from cige.models.build import InputTables, Vectors, build_tagger, input_tables
from cige.models.config import ComponentsConfig, ModelConfig
from cige.models.flat import FlatConfig
from cige.models.model import LatticeModel
from cige.models.registry import ARCHITECTURES
from cige.nn.bert import BertFeatures

LABELS = ["LOC", "ORG", "PER"]
TEXT = "李明在北京。"
SENTENCE = "李明在北京。王小红是罗氏公司的经理，他来自南京市。"
FOUND = [(0, 2, "PER"), (3, 5, "LOC"), (6, 9, "PER"), (10, 14, "ORG"), (21, 24, "LOC")]  # by `trained_model`
NAMES = {
    "LOC": ["北京", "上海", "重庆", "南京市", "巴塞尔"],
    "ORG": ["罗氏公司", "人和药店", "中国银行", "清华大学"],
    "PER": ["李明", "王小红", "张三", "欧阳修"],
}
UNSEEN = "轩辕渊瀚"  # characters without a vector, with components that other characters have
FRAMES = ["{PER}在{LOC}。", "{ORG}设在{LOC}", "{PER}是{ORG}的经理，他来自{LOC}。", "今天天气很好"]
FRAMES += ["{LOC}的{ORG}请了{PER}"]
# Only words tell where one new name ends and the next begins.
FRAMES += ["请{PER}{LOC}{ORG}说话", "{LOC}{ORG}{PER}到了"]
WORDS = ["北京", "上海", "重庆", "南京", "南京市", "公司", "药店", "人和药店", "中国", "银行", "中国银行"]
WORDS += ["清华", "大学", "清华大学", "经理", "今天", "天气", "来自", "设在", "长江", "大桥", "长江大桥", "市长"]
# Some are words of the lexicon, some only of lists, and 北京 is in two lists.
GAZETTEERS = {
    "LOC/good": ["北京", "上海", "巴塞尔"],
    "ORG": ["罗氏公司", "清华大学", "中国银行", "北京"],
    "PER": ["张三", "王小红", "中国"],
}
COMPONENTS = ComponentsConfig(table="components.tsv", embedding_width=6, width=10, dropout_prob=0.0)
CONFIG = FlatConfig(
    n_heads=4, head_width=8, ff_width=64, embed_dropout_prob=0.1, word_dropout_prob=0.0, ff_dropout_prob=0.0,
    output_dropout_prob=0.0,
)  # fmt: skip


def sentences(n: int = 60, *, seed: int = 0, new_name_prob: float = 0.0) -> list[Sentence]:
    """Frames filled with names, some of them made up of rare characters."""
    return list(_sentences(n, seed, new_name_prob))


@cache
def _sentences(n: int, seed: int, new_name_prob: float) -> tuple[Sentence, ...]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        text, spans = "", []
        for piece in str(rng.choice(FRAMES)).replace("{", "|{").replace("}", "}|").split("|"):
            label = piece.strip("{}")
            filled = piece
            if piece.startswith("{"):
                is_new = rng.random() < new_name_prob
                filled = new_name(rng) if is_new else str(rng.choice(NAMES[label]))
                spans.append(Span(len(text), len(text) + len(filled), label))
            text += filled
        made.append(Sentence(text, tuple(spans)))
    return tuple(made)


def new_name(rng: np.random.Generator) -> str:
    """Two to four characters that no vector knows."""
    return "".join(map(chr, rng.integers(0x9000, 0x9E00, int(rng.integers(2, 5)))))


def components(text: str) -> dict[str, tuple[str, ...]]:
    """Made-up components of the Chinese characters in `text`: one to four of the 23 that there are."""
    chars = sorted({char for char in text if "\u4e00" <= char <= "\u9fff"})
    return {char: tuple(str((ord(char) // 7**k) % 23) for k in range(1 + ord(char) % 4)) for char in chars}


def random_table(words: list[str], width: int, *, seed: int) -> VectorTable:
    vectors = np.random.default_rng(seed).normal(size=(len(words), width)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return VectorTable(words, vectors)


def model(
    *,
    scheme: str = "BMES",
    config: ModelConfig = CONFIG,
    architecture: str = "flat",
    seed: int = 0,
    features: BertFeatures | None = None,
    typed: bool = False,
) -> LatticeModel:
    """A new untrained model with its own lexicon; `features` are what `config.bert` names.

    With `typed` it reads the labels of words and may tag what it does not know the type of. If `config` reads
    gazetteers, those are GAZETTEERS. If it reads components, some characters without a vector have some.
    """
    lexicon = Lexicon.from_words(WORDS)
    if config.reads_gazetteers:
        lexicon, _ = with_lists(lexicon, list(GAZETTEERS.values()))
    counts = ARCHITECTURES[architecture].reads_counts
    tables = deepcopy(_tables(seed, counts, config.reads_gazetteers, config.components is not None))
    labels = LABELS
    if typed:
        config, tables, labels = replace(config, word_labels=True), tables.with_word_labels(LABELS), [*LABELS, "*"]
    torch.manual_seed(seed)
    tagger = build_tagger(config, tables, labels, architecture=architecture, scheme=scheme, features=features)
    return LatticeModel(
        tagger=tagger.eval(),
        vocabulary=tables.vocabulary,
        lexicon=lexicon,
        config=config,
        labels=LABELS,
        architecture=architecture,
        scheme=scheme,
    )


@cache
def _tables(seed: int, counts: bool, gazetteers: bool, components_too: bool) -> InputTables:
    """The tables of `model`, which depend on nothing else; each model gets a copy."""
    lexicon, groups = Lexicon.from_words(WORDS), None
    if gazetteers:
        lexicon, groups = with_lists(lexicon, list(GAZETTEERS.values()))
    known = sentences()
    chars = sorted(set("".join(s.text for s in known)))
    bigrams = sorted({s.text[i : i + 2] for s in known for i in range(len(s.text) - 1)})
    vectors = Vectors(
        char=random_table(chars, 12, seed=1),
        bigram=random_table(bigrams, 10, seed=2),
        word=random_table([*WORDS, *chars[::2]], 8, seed=3),  # half of the characters are words too
    )
    lattices = [build_lattice(s.text, lexicon.snapshot()) for s in known]
    names = tuple(GAZETTEERS) if gazetteers else ()
    tables = input_tables(lattices, lexicon, vectors, seed=seed, count=counts, word_groups=groups, gazetteers=names)
    if not components_too:
        return tables
    of_chars = components("".join([*chars, *map(chr, range(0x9000, 0x9E00, 3)), UNSEEN]))
    return tables.with_components(ComponentTable.of(of_chars, char_codes("".join(chars))))


def emissions(model: LatticeModel, texts: list[str]) -> torch.Tensor:
    """float[characters of all texts, L], read as one batch."""
    batch, _ = model.encode(texts)
    with torch.no_grad():
        return model.tagger(batch).emissions[batch.char_mask]


def emissions_of_each(model: LatticeModel, texts: list[str]) -> list[torch.Tensor]:
    """float[T, L] of each text, read as one batch."""
    batch, _ = model.encode(texts)
    with torch.no_grad():
        out = model.tagger(batch).emissions
    return [row[:n] for row, n in zip(out, batch.n_chars, strict=True)]


@torch.no_grad()
def vary_layer_norms(model: LatticeModel) -> None:
    """Weights that are not all one and biases that are not all zero, so that a missing one is seen."""
    for part in model.tagger.modules():
        if isinstance(part, torch.nn.LayerNorm):
            part.weight.uniform_(0.5, 1.5)
            part.bias.uniform_(-0.5, 0.5)


def triples(entities: Iterable[Entity]) -> list[tuple[int, int, str]]:
    return [(e.start, e.end, e.label) for e in entities]


def trained_model(**options) -> LatticeModel:
    """A model that knows the names of `sentences` and listens to user words; each caller gets one of its own."""
    made = model(**options)
    made.tagger.load_state_dict(_trained_weights(tuple(sorted(options.items()))))
    return made


@cache
def _trained_weights(options: tuple) -> dict[str, torch.Tensor]:
    made = model(**dict(options))
    rng = np.random.default_rng(0)
    known = sentences(300, seed=1, new_name_prob=0.8)
    encoded = [made.vocabulary.encode(lattice) for lattice in made.lattices([s.text for s in known])]
    tag_ids = {tag: k for k, tag in enumerate(made.tagger.tags)}
    optimizer = torch.optim.Adam(made.tagger.parameters(), lr=1e-2)
    made.tagger.train()
    regime = UserWordRegime(sentence_prob=0.7, entity_prob=0.95, n_false=0.1)
    if made.vocabulary.word_labels:
        regime = replace(regime, label_prob=0.8, wrong_label_prob=0.1, unknown_label_prob=0.5, n_false=0.3)
    for _ in range(150):
        rows = rng.choice(len(known), 16, replace=False)
        simulated = [
            simulate_user_words(encoded[k], known[k].spans, regime, rng, word_labels=made.vocabulary.word_labels)
            for k in rows
        ]
        tags = [spans_to_tags(len(x.text), spans, made.scheme) for x, spans in simulated]
        gold = [np.array([tag_ids[tag] for tag in of_text]) for of_text in tags]
        optimizer.zero_grad()
        made.tagger.loss(collate([lattice for lattice, _ in simulated], gold)).backward()
        optimizer.step()
    return {k: v.clone() for k, v in made.tagger.state_dict().items()}
