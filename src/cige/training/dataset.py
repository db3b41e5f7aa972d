"""TrainingSet: labelled sentences as rows of the embedding tables, varied anew each epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cige.data.batch import LatticeBatch, collate
from cige.data.mentions import NEVER, MentionPool, MentionRegime
from cige.data.sentence import Sentence
from cige.data.tags import spans_to_tags
from cige.data.user_words import UserWordRegime, simulate_user_words
from cige.data.vocabulary import EncodedLattice, Vocabulary
from cige.errors import DataError
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.snapshot import LexiconSnapshot

Example = tuple[EncodedLattice, np.ndarray]


class TrainingSet:
    """Encoded sentences and their gold tags.

    What epoch e makes of sentence i depends on (seed, e, i) alone: not on the order of reading, on workers or on
    where a run was cut off and resumed.

    Args:
        sentences: labelled text.
        lattices: the lattice of each.
        tags: the L tag names; a tag's id is its place.
        regime: how user words are simulated.
        mentions: how entities are replaced by others of their label.
        snapshot: the words that a changed sentence is matched against; needed only where `mentions` changes any.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        lattices: Sequence[Lattice],
        *,
        vocabulary: Vocabulary,
        tags: Sequence[str],
        scheme: str,
        regime: UserWordRegime,
        seed: int,
        mentions: MentionRegime = NEVER,
        snapshot: LexiconSnapshot | None = None,
    ):
        if mentions.sentence_prob > 0 and snapshot is None:
            raise ValueError("a training set that replaces mentions needs the snapshot to match new sentences against")
        self._sentences = sentences
        self._vocabulary = vocabulary
        self._tag_names = tags
        self._scheme = scheme
        self._mentions = mentions
        self._pool = MentionPool(sentences)
        self._snapshot = snapshot
        self._encoded = [vocabulary.encode(lattice) for lattice in lattices]
        self._tags = [tag_ids(sentence, tags, scheme) for sentence in sentences]
        self._regime = regime
        self._seed = seed
        self.n_nodes = np.array([x.n_nodes for x in self._encoded], np.int64)
        """int64[n]: nodes of each sentence as given, without simulated user words."""

    def __len__(self) -> int:
        return len(self._encoded)

    def example(self, index: int, epoch: int) -> Example:
        """What epoch `epoch` (from 0) reads of a sentence: its lattice and int64[T] tag ids."""
        rng = np.random.default_rng((self._seed, epoch, index))
        sentence, encoded, tags = self._sentences[index], self._encoded[index], self._tags[index]
        if self._mentions.sentence_prob > 0:
            sentence = self._pool.replace(sentence, self._mentions, rng)
            if sentence is not self._sentences[index]:
                assert self._snapshot is not None
                encoded = self._vocabulary.encode(build_lattice(sentence.text, self._snapshot))
                tags = tag_ids(sentence, self._tag_names, self._scheme)
        return simulate_user_words(encoded, sentence.spans, self._regime, rng), tags


def collate_examples(examples: Sequence[Example]) -> LatticeBatch:
    return collate([lattice for lattice, _ in examples], [tags for _, tags in examples])


def tag_ids(sentence: Sentence, tags: Sequence[str], scheme: str) -> np.ndarray:
    """int64[T] ids of a sentence's gold tags in the list `tags`."""
    ids = {tag: k for k, tag in enumerate(tags)}
    try:
        return np.array([ids[tag] for tag in spans_to_tags(len(sentence.text), sentence.spans, scheme)], np.int64)
    except KeyError as missing:
        where = f" (line {sentence.line})" if sentence.line else ""
        raise DataError(f"tag {missing} of the sentence {sentence.text[:30]!r}{where} is none of the model's") from None
