"""Attention with a mask: the definition on the CPU, and the backends that are right on a GPU."""

import torch
from torch.nn.attention import SDPBackend, _cur_sdpa_kernel_backends

from cige.nn import fused_attention as module
from cige.nn.fused_attention import fused_attention


def example():
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 3, 5, 4, generator=generator) for _ in range(3))
    scores = torch.randn(2, 3, 5, 5, generator=generator)
    scores[0, :, :, 3:] = float("-inf")
    return query, key, value, scores


def test_equals_the_definition():
    query, key, value, scores = example()
    expected = torch.softmax(0.3 * query @ key.transpose(2, 3) + scores, -1) @ value
    torch.testing.assert_close(fused_attention(query, key, value, scores, scale=0.3), expected)


def test_on_a_gpu_cudnn_is_never_asked(monkeypatch):
    class OnGpu(torch.Tensor):
        is_cuda = True

    seen = []

    def attention(*_, **options):
        seen.append((set(_cur_sdpa_kernel_backends()), options["dropout_p"]))

    monkeypatch.setattr(module.F, "scaled_dot_product_attention", attention)
    query, *others = example()
    fused_attention(query.as_subclass(OnGpu), *others, scale=1.0, dropout_prob=0.5)
    assert seen == [({SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH}, 0.5)]
    assert SDPBackend.CUDNN_ATTENTION in _cur_sdpa_kernel_backends()
