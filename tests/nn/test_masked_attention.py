"""Attention with masks and relations, against loops over pairs."""

from __future__ import annotations

import pytest
import torch

from cige.nn.dropout import Dropout
from cige.nn.masked_attention import Relations, attention_of_one, by_head, masked_attention


def example(seed: int = 0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    query, key, value = normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 5)
    allowed = torch.rand(2, 4, 6, generator=generator) < 0.5
    allowed[0, 1] = False
    codes = torch.randint(0, 3, (2, 4, 6), generator=generator)
    return query, key, value, allowed, Relations(codes, normal(3, 3, 5), normal(3, 3, 5))


def test_equals_loops_over_pairs():
    query, key, value, allowed, relations = example()
    out, probabilities = masked_attention(query, key, value, allowed, relations=relations)
    for b in range(2):
        for h in range(3):
            for i in range(4):
                seen = [j for j in range(6) if allowed[b, i, j]]
                read = torch.zeros(5, dtype=torch.float64)
                scores = torch.stack(
                    [query[b, h, i] @ (key[b, h, j] + relations.keys[h, relations.codes[b, i, j]]) for j in seen]
                ) if seen else torch.zeros(0)  # fmt: skip
                for j, share in zip(seen, scores.softmax(0), strict=True):
                    read = read + share * (value[b, h, j] + relations.values[h, relations.codes[b, i, j]])
                    torch.testing.assert_close(probabilities[b, h, i, j], share)
                torch.testing.assert_close(out[b, i, h * 5 : h * 5 + 5], read)


def test_a_query_that_sees_nothing_reads_zeros_and_sends_no_nan_back():
    query, key, value, allowed, relations = example()
    query.requires_grad_()
    out, probabilities = masked_attention(query, key, value, allowed, relations=relations)
    assert not out[0, 1].any() and not probabilities[0, :, 1].any()
    out.sum().backward()
    assert query.grad.isfinite().all() and query.grad.any()


def test_relations_may_leave_values_alone():
    query, key, value, allowed, relations = example()
    keys_only = Relations(relations.codes, relations.keys)
    out, _ = masked_attention(query, key, value, allowed, relations=keys_only)
    no_values = Relations(relations.codes, relations.keys, torch.zeros_like(relations.keys))
    torch.testing.assert_close(out, masked_attention(query, key, value, allowed, relations=no_values)[0])


def test_dropout_is_on_what_is_read_and_not_on_the_probabilities():
    query, key, value, allowed, relations = example()
    plain, expected = masked_attention(query, key, value, allowed, relations=relations)
    torch.manual_seed(0)
    dropped, found = masked_attention(query, key, value, allowed, relations=relations, dropout=Dropout(0.5))
    assert torch.equal(found, expected) and not torch.allclose(dropped, plain)
    still, _ = masked_attention(query, key, value, allowed, relations=relations, dropout=Dropout(0.5).eval())
    assert torch.equal(still, plain)


def test_heads_are_blocks_of_the_width():
    x = torch.arange(12.0).view(1, 2, 6)
    assert by_head(x, 3)[0, 2].tolist() == [[4, 5], [10, 11]]


@pytest.mark.parametrize("dropout", [None, Dropout(0.5)], ids=["no dropout", "dropout"])
def test_one_query_reads_what_it_would_of_projected_keys(dropout):
    """Keys that are not projected give the same output, the same gradients and the same dropout."""
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(3, 2, 1, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(3, 6, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    allowed = torch.rand(3, 1, 6, generator=generator) < 0.7
    allowed[1] = False
    torch.manual_seed(0)
    key, value = (torch.nn.Linear(5, 8, dtype=torch.float64) for _ in range(2))
    leaves = [query, keys, *value.parameters(), key.weight]
    results = []
    for read in (
        lambda: masked_attention(query, by_head(key(keys), 2), by_head(value(keys), 2), allowed, dropout=dropout),
        lambda: attention_of_one(query, keys, allowed, key=key, value=value, dropout=dropout),
    ):
        torch.manual_seed(3)
        out, probabilities = read()
        results.append([out, probabilities, *torch.autograd.grad((out**2).sum(), leaves)])
    for slow, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow)
    assert not results[1][0][1].any()  # the sentence whose keys are all hidden
