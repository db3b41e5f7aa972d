"""Tables whose first rows are trained, and what they become in a small folder."""

from __future__ import annotations

import pytest
import torch

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import N_SPECIAL, PAD, UNK
from cige.nn.embeddings import InputSizes, LatticeVectors, SplitEmbedding


def table(n_rows: int = 9, n_tuned: int = 5, *, width: int = 4) -> tuple[SplitEmbedding, torch.Tensor]:
    vectors = torch.randn(n_rows, width, generator=torch.Generator().manual_seed(0))
    vectors[PAD] = 0
    made = SplitEmbedding(n_rows=n_rows, n_tuned=n_tuned, width=width)
    made.load_vectors(vectors)
    return made, vectors


@pytest.mark.parametrize("n_tuned", [3, 5, 9])
def test_looks_up_tuned_and_fixed_rows(n_tuned):
    made, vectors = table(n_tuned=n_tuned)
    rows = torch.tensor([[0, 3, 8], [8, 4, 2]])
    out = made(rows)
    assert out.shape == (2, 3, 4) and out.dtype == torch.float32
    torch.testing.assert_close(out, vectors[rows], atol=2e-3, rtol=0)
    is_tuned = rows < n_tuned
    assert torch.equal(out[is_tuned], vectors[rows][is_tuned])


def test_a_table_of_tuned_rows_alone_never_waits_for_the_device():
    """Whether a batch reads a fixed row is asked only where there is one: the answer is a synchronisation on a GPU."""
    made = SplitEmbedding(n_rows=5, n_tuned=5, width=4).to("meta")
    assert made(torch.zeros(2, 3, dtype=torch.int64, device="meta")).shape == (2, 3, 4)


@pytest.mark.parametrize(("rows", "n_reads"), [([[0, 4, 2]], 0), ([[0, 4, 5]], 1)])
def test_fixed_rows_are_read_only_where_a_batch_holds_one(rows, n_reads, monkeypatch):
    made, vectors = table()
    calls = []
    read = made._fixed_rows
    monkeypatch.setattr(made, "_fixed_rows", lambda rows: calls.append(rows) or read(rows))
    torch.testing.assert_close(made(torch.tensor(rows)), vectors[torch.tensor(rows)], atol=2e-3, rtol=0)
    assert len(calls) == n_reads


@pytest.mark.parametrize("is_sparse", [False, True])
def test_gradient_reaches_the_tuned_rows_that_were_read_and_nothing_else(is_sparse):
    made, _ = table()
    made.sparse_gradient = is_sparse
    made(torch.tensor([PAD, 1, 3, 3, 6, 8])).sum().backward()
    assert made.tuned.grad.is_sparse == is_sparse
    gradient = made.tuned.grad.to_dense()
    assert gradient.sum(1).tolist() == [0.0, 4.0, 0.0, 8.0, 0.0]  # neither PAD nor the last row, where fixed rows begin
    if is_sparse:
        assert set(made.tuned.grad.coalesce().indices()[0].tolist()) <= {PAD, 1, 3}
    assert {name for name, p in made.named_parameters()} == {"tuned"}


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("int8", 0.02)])
def test_compact_state_loads_into_a_table_of_special_rows(dtype, tolerance):
    made, vectors = table(n_rows=40, n_tuned=20)
    state = made.compact(dtype)
    assert state["tuned"].shape == (N_SPECIAL, 4) and state["fixed"].dtype == getattr(torch, dtype)
    for assign in (False, True):
        small = SplitEmbedding(n_rows=40, n_tuned=N_SPECIAL, width=4)
        small.load_state_dict(state, assign=assign)
        out = small(torch.arange(40))
        torch.testing.assert_close(out, vectors, atol=tolerance * float(vectors.abs().max()), rtol=0)
        assert torch.equal(out[:N_SPECIAL], vectors[:N_SPECIAL])
        again = SplitEmbedding(n_rows=40, n_tuned=N_SPECIAL, width=4)
        again.load_state_dict(small.compact(dtype), assign=True)
        torch.testing.assert_close(again(torch.arange(40)), out, atol=tolerance, rtol=0)
    assert len(made.tuned) == 20  # the table itself is as it was


def test_int8_has_a_scale_a_row_so_small_rows_keep_their_direction():
    made = SplitEmbedding(n_rows=6, n_tuned=3, width=4)
    made.load_vectors(torch.tensor([[1.0, -2, 3, 4]]) * torch.tensor([[0], [1], [1], [100], [1], [0.01]]))
    small = SplitEmbedding(n_rows=6, n_tuned=3, width=4)
    small.load_state_dict(made.compact("int8"))
    for row in (3, 4, 5):
        similarity = torch.cosine_similarity(small(torch.tensor(row)), torch.tensor([1.0, -2, 3, 4]), dim=0)
        assert similarity.item() > 0.999


def test_int8_of_zero_rows_is_zero():
    made = SplitEmbedding(n_rows=5, n_tuned=4, width=4)
    small = SplitEmbedding(n_rows=5, n_tuned=3, width=4)
    small.load_state_dict(made.compact("int8"))
    assert torch.equal(small(torch.arange(5)), torch.zeros(5, 4))


def test_an_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match=r"table dtype 'int4'; expected \"float16\" or \"int8\""):
        table()[0].compact("int4")


def test_rows_of_another_number_are_refused():
    state = table(n_rows=40, n_tuned=20)[0].compact("int8")
    with pytest.raises(RuntimeError, match="size mismatch"):
        SplitEmbedding(n_rows=39, n_tuned=N_SPECIAL, width=4).load_state_dict(state)


def lattice_vectors(**options) -> LatticeVectors:
    torch.manual_seed(0)
    settings = {"dropout_prob": 0.0, "word_dropout_prob": 0.0} | options
    made = LatticeVectors(InputSizes((8, 8, 8), (5, 5, 5), (3, 4, 5)), **settings)
    for part in (made.char, made.bigram, made.word, made.char_word):
        if part is not None:
            vectors = torch.randn(8, part.width)
            vectors[PAD] = 0
            part.load_vectors(vectors)
    return made


def batch_of(chars: list[int], bigrams: list[int], words: list[int]) -> LatticeBatch:
    at = torch.zeros(1, len(words), dtype=torch.long)
    return LatticeBatch(
        chars=torch.tensor([chars]), bigrams=torch.tensor([bigrams]), n_chars=torch.tensor([len(chars)]),
        words=torch.tensor([words]), word_starts=at, word_ends=at, word_counts=at, word_groups=at,
        n_words=torch.tensor([len(words)]), texts=("",),
    )  # fmt: skip


def test_a_character_is_its_vector_and_that_of_its_bigram():
    made, batch = lattice_vectors(), batch_of([3, 7], [4, 6], [5])
    chars, words = made.chars(batch), made.words(batch)
    assert chars.shape == (1, 2, made.char_width) and words.shape == (1, 1, made.word_width)
    assert torch.equal(chars, torch.cat([made.char(batch.chars), made.bigram(batch.bigrams)], -1))
    assert torch.equal(words, made.word(batch.words))


def test_a_model_without_bigrams_has_no_table_of_them():
    made, batch = lattice_vectors(use_bigrams=False, bigram_backoff=True), batch_of([3, 7], [4, 6], [5])
    assert made.char_width == 3 and torch.equal(made.chars(batch), made.char(batch.chars))
    assert not any("bigram" in name or "backoff" in name for name in made.state_dict())


def test_characters_are_words_too_where_asked_for():
    made, batch = lattice_vectors(char_words=True), batch_of([3, 7], [4, 6], [5])
    assert torch.equal(made.char_words(batch), made.char_word(batch.chars)) and made.char_words(batch).shape[2] == 5


def test_each_dropout_has_its_own_vectors():
    batch = batch_of([3, 3], [4, 4], [3, 3])
    for options, expected in (({"dropout_prob": 0.5}, (True, False)), ({"word_dropout_prob": 0.5}, (False, True))):
        made = lattice_vectors(**options)
        drawn = [(made.chars(batch), made.words(batch)) for _ in range(20)]
        varies = tuple(any(not torch.equal(x[part], drawn[0][part]) for x in drawn) for part in (0, 1))
        assert varies == expected
        made.eval()
        assert torch.equal(made.chars(batch), made.chars(batch)) and torch.equal(made.words(batch), made.words(batch))


def test_a_bigram_without_vector_is_made_from_its_characters():
    made = lattice_vectors(bigram_backoff=True)
    batch = batch_of([3, 7, 4], [4, UNK, UNK], [5])
    char_vectors = made.char(batch.chars)
    after = torch.cat([char_vectors[:, 1:], torch.zeros(1, 1, 3)], 1)
    composed = made.backoff(torch.cat([char_vectors, after], -1))
    bigrams = torch.cat([made.bigram(batch.bigrams[:, :1]), composed[:, 1:]], 1)
    torch.testing.assert_close(made.chars(batch), torch.cat([char_vectors, bigrams], -1))
