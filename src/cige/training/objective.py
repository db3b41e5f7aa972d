"""The training objective of taggers: batches of lattices, their loss, and entity F1 on development sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch, collate
from cige.data.sentence import Sentence, Span
from cige.data.vocabulary import Vocabulary
from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan
from cige.engine.settings import BatchConfig
from cige.entities.scores import Report, score
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.models.tagger import Tagger
from cige.nn.char_features import CharFeatures
from cige.nn.contexts import evaluating
from cige.nn.embeddings import SplitEmbedding
from cige.tagging.prediction import batches_by_size
from cige.training.dataset import TrainingSet
from cige.training.recipe import TaggerOptimizerConfig

MAX_SENTENCES, MAX_PAIRS = 32, 1_000_000  # per batch; the second applies if the recipe sets no limit


class EvaluationSet:
    """Encoded sentences with their gold spans, in batches of similar length.

    Args:
        comparable: converts gold or predicted spans to those that are compared; None compares all spans unchanged.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        lattices: Sequence[Lattice],
        *,
        vocabulary: Vocabulary,
        scheme: str,
        max_pairs: int | None,
        comparable: Callable[[Sequence[Span]], Sequence[Span]] | None = None,
    ):
        self._encoded = [vocabulary.encode(lattice) for lattice in lattices]
        options = {"batch_size": MAX_SENTENCES, "max_pairs": max_pairs or MAX_PAIRS}
        self._batches = list(batches_by_size(lattices, **options))
        self._comparable = comparable or (lambda spans: spans)
        self._gold = [self._comparable(sentence.spans) for sentence in sentences]
        self._scheme = scheme

    def score(self, tagger: Tagger) -> Report:
        """Strict scores of the best tag sequences; the training or evaluation mode of the tagger does not change."""
        predicted: list[list[Span]] = [[] for _ in self._gold]
        with torch.no_grad(), evaluating(tagger):
            for rows in self._batches:
                batch = collate([self._encoded[row] for row in rows]).to(tagger.device)
                for row, spans in zip(rows, tagger.best_spans(batch, self._scheme), strict=True):
                    known = [span for span in spans if span.label != UNKNOWN_TYPE]  # no user word has its label
                    predicted[row] = list(self._comparable(known))
        return score(self._gold, predicted)


class TaggingObjective:
    """See engine/objective.py.

    Args:
        dev_sets: development sentences by name of their corpus; the best weights are those with the highest mean F1.
    """

    keeps_best = True

    def __init__(
        self,
        train_set: TrainingSet,
        dev_sets: Mapping[str, EvaluationSet],
        *,
        batches: BatchConfig,
        n_epochs: int,
        seed: int,
    ):
        self._train_set, self._dev_sets, self._n_epochs = train_set, dict(dev_sets), n_epochs
        self.plan = BatchPlan(train_set.n_nodes, batches, seed=seed)
        self.n_steps = self.plan.n_steps(n_epochs)

    def read(self, epoch: int, numbers: Sequence[int]) -> LatticeBatch:
        return self._train_set.collate([self._train_set.example(number, epoch) for number in numbers])

    def weights(self, batch: LatticeBatch) -> Sequence[float]:
        return (len(batch),)

    def losses(self, tagger: Tagger, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        loss = tagger.loss(batch.to(tagger.device)) * len(batch)
        counts = torch.stack([loss.detach().double(), loss.new_tensor(len(batch), dtype=torch.float64)])
        return loss[None], counts

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        return {"loss": totals[0] / totals[1]}

    def evaluate(self, tagger: Tagger) -> dict[str, float]:
        """The mean scores of the corpora, and with several corpora the F1 of each."""
        reports = {name: dev_set.score(tagger) for name, dev_set in self._dev_sets.items()}
        if not reports:
            return {}
        names = ("f1", "precision", "recall")
        scores = {name: fmean(getattr(report, name) for report in reports.values()) for name in names}
        return scores | ({f"f1 {name}": report.f1 for name, report in reports.items()} if len(reports) > 1 else {})

    def describe(self, record: Record, state: RunState) -> str:
        line = f"epoch {record.epoch}/{self._n_epochs}  loss {record.train['loss']:.4f}"
        if not record.scores or state.best is None:
            return line
        return f"{line}  dev F1 {100 * record.score:.2f} (best {100 * state.best.score:.2f})"


def learning_rate_scales(tagger: Tagger, config: TaggerOptimizerConfig) -> dict[nn.Module, float]:
    """Modules of a tagger -> the factor of their learning rate."""
    modules = list(tagger.modules())
    embeddings = {m: config.embedding_learning_rate_scale for m in modules if isinstance(m, SplitEmbedding)}
    return embeddings | {m: config.bert_learning_rate_scale for m in modules if isinstance(m, CharFeatures)}
