"""TrainingSet: labelled sentences as rows of the embedding tables, with random variation in each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from cige.data.batch import LatticeBatch, collate
from cige.data.gazetteer_regime import SHOWN, GazetteerRegime, hide_gazetteers
from cige.data.gold_spans import GoldSpans
from cige.data.mentions import NEVER, MentionPool, MentionRegime
from cige.data.sentence import Sentence
from cige.data.tag_sets import GoldTags
from cige.data.user_words import UserWordRegime, simulate_user_words
from cige.data.vocabulary import EncodedLattice, Vocabulary
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.snapshot import LexiconSnapshot


class SourceMix:
    """Selects the sentences of each epoch, which depend only on (seed, epoch).

    An epoch has w times as many sentences of a corpus with weight w as the corpus has. If w is not a whole number, the
    remaining sentences are taken from a shuffled order, which continues from epoch to epoch, so that all sentences are
    read equally often.

    Args:
        n_sentences, weights: size and weight of each corpus; sentences are numbered across all corpora.
    """

    def __init__(self, n_sentences: Sequence[int], weights: Sequence[float], *, seed: int):
        self._n_sentences, self._seed = list(n_sentences), seed
        self._n_read = [round(n * weight) for n, weight in zip(n_sentences, weights, strict=True)]
        self._last: tuple[int, np.ndarray] | None = None

    def sentences(self, epoch: int) -> np.ndarray:
        """int64[n]: the numbers of the sentences of an epoch (from 0); a sentence may occur several times."""
        if self._last is None or self._last[0] != epoch:
            self._last = epoch, self._sentences(epoch)
        return self._last[1]

    def _sentences(self, epoch: int) -> np.ndarray:
        firsts = np.cumsum([0, *self._n_sentences[:-1]])
        corpora = enumerate(zip(firsts, self._n_sentences, self._n_read, strict=True))
        return np.concatenate([first + self._of_source(k, n, n_read, epoch) for k, (first, n, n_read) in corpora])

    def _of_source(self, source: int, n: int, n_read: int, epoch: int) -> np.ndarray:
        if n == n_read:
            return np.arange(n)
        begin = epoch * n_read
        passes = range(begin // n, (begin + n_read - 1) // n + 1) if n_read else range(0)
        orders = [np.random.default_rng((self._seed, source, k)).permutation(n) for k in passes]
        walk = np.concatenate(orders) if orders else np.zeros(0, np.int64)
        start = begin % n
        return walk[start : start + n_read].astype(np.int64)


Example = tuple[EncodedLattice, np.ndarray]


class TrainingSet:
    """Encoded sentences and their gold tags, of one corpus or of several.

    The example at index i of epoch e depends only on (seed, e, i), not on the order of reading, the number of workers,
    or interruptions of the run.

    Args:
        golds: a GoldTags for each corpus, which converts gold spans to tag sets; all have the same tag sets. For a
            tagger with a pair grid, GoldSpans.
        mix: how often each corpus is read in an epoch; None reads every sentence once.
        source_of: int64[n], the index in `golds` for each sentence; None means the first.
        regime, gazetteers, mentions: how user words are simulated, gazetteers hidden, and entities replaced.
        snapshot: the words that changed sentences are matched with; required only if `mentions` changes sentences.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        lattices: Sequence[Lattice],
        *,
        vocabulary: Vocabulary,
        golds: Sequence[GoldTags] | Sequence[GoldSpans],
        regime: UserWordRegime,
        gazetteers: GazetteerRegime = SHOWN,
        seed: int,
        mix: SourceMix | None = None,
        source_of: np.ndarray | None = None,
        mentions: MentionRegime = NEVER,
        snapshot: LexiconSnapshot | None = None,
    ):
        if mentions.sentence_prob > 0 and snapshot is None:
            raise ValueError("a training set that replaces mentions needs the snapshot to match new sentences against")
        self._sentences = sentences
        self._vocabulary = vocabulary
        self._golds, self._mix = golds, mix
        self._source_of = np.zeros(len(sentences), np.int64) if source_of is None else source_of
        self._mentions = mentions
        self._pool = MentionPool(sentences if mentions.sentence_prob > 0 else ())
        self._snapshot = snapshot
        self._encoded = [vocabulary.encode(lattice) for lattice in lattices]
        self._tags = [golds[k].ids(sentence) for k, sentence in zip(self._source_of, sentences, strict=True)]
        self._regime, self._gazetteers = regime, gazetteers
        self._seed = seed
        self._n_nodes = np.array([x.n_nodes for x in self._encoded], np.int64)
        sets = golds[0].sets if isinstance(golds[0], GoldTags) else None
        self._tag_sets = None
        if sets is not None and len(sets) > len(sets.tags):
            self._tag_sets = torch.from_numpy(sets.log_weights)

    def __len__(self) -> int:
        return len(self._encoded)

    def sentences(self, epoch: int) -> np.ndarray:
        """int64[n]: the indices of the sentences of an epoch (from 0)."""
        return np.arange(len(self)) if self._mix is None else self._mix.sentences(epoch)

    def n_nodes(self, epoch: int) -> np.ndarray:
        """int64[n]: the number of nodes of each of these sentences, without simulated user words."""
        return self._n_nodes[self.sentences(epoch)]

    def example(self, place: int, epoch: int) -> Example:
        """The example at index `place` of `sentences` in an epoch (from 0): a lattice and int64[T] ids of tag sets.

        For a tagger with a pair grid, the ids are int64[G, 3] cells (see GoldSpans).
        """
        rng = np.random.default_rng((self._seed, epoch, place))
        index = place if self._mix is None else int(self._mix.sentences(epoch)[place])
        sentence, encoded, tags = self._sentences[index], self._encoded[index], self._tags[index]
        gold = self._golds[self._source_of[index]]
        if self._mentions.sentence_prob > 0:
            sentence = self._pool.replace(sentence, self._mentions, rng)
            if sentence is not self._sentences[index]:
                assert self._snapshot is not None
                encoded = self._vocabulary.encode(build_lattice(sentence.text, self._snapshot))
                tags = gold.ids(sentence)
        encoded = hide_gazetteers(encoded, self._gazetteers, rng, n_gazetteers=self._vocabulary.n_groups - 1)
        encoded, spans = simulate_user_words(
            encoded, sentence.spans, self._regime, rng, word_labels=self._vocabulary.word_labels
        )
        if spans is not sentence.spans:  # some entities simulate a type that the model does not know
            tags = gold.ids(replace(sentence, spans=tuple(spans)))
        return encoded, gold.narrowed(tags, spans, self._labelled(encoded))

    def _labelled(self, encoded: EncodedLattice) -> set[tuple[int, int, str]]:
        """(start, end, label) of the user words whose label the model knows."""
        names = self._vocabulary.word_labels
        return {
            (int(encoded.starts[k]), int(encoded.ends[k]), names[encoded.word_labels[k] - 1])
            for k in np.flatnonzero(encoded.word_labels)
            if encoded.word_labels[k] <= len(names)
        }

    def collate(self, examples: Sequence[Example]) -> LatticeBatch:
        """A batch with gold tags."""
        lattices, gold = [lattice for lattice, _ in examples], [ids for _, ids in examples]
        if isinstance(self._golds[0], GoldSpans):
            return collate(lattices, cells=gold)
        return collate(lattices, gold, self._tag_sets)
