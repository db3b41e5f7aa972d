"""The size of a Lattice-BERT, and its arithmetic operations per character."""

from __future__ import annotations

import torch

from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.network_config import LatticeBertConfig

TOKENS_PER_CHAR = 1.35  # appendix C.1: 173 lattice tokens for 128 characters
MASK_PROB = 0.15


def describe(
    config: LatticeBertConfig,
    *,
    n_chars: int = 128,
    tokens_per_char: float = TOKENS_PER_CHAR,
    adapter: torch.nn.Module | None = None,
) -> dict[str, object]:
    """The size and cost of a model.

    Args:
        n_chars: number of characters of a text; tokens_per_char: of lattice tokens per character, 1 without words.
        adapter: what reads words after one of the layers; its parameters are counted, but not its operations.

    Returns:
        "parameters": number of parameters by part; "n_parameters": their sum, including the heads of pre-training.
        "n_chars", "n_tokens": size of the text.
        "flops": operations per character by part, for a forward pass over all tokens (a multiplication and an addition
            count as two); "forward_flops": their sum. Normalisations, softmax and GELU are not counted, and neither are
            position scores, which are computed per batch rather than per character.
        "training_flops": operations per character in a pre-training step, forward and backward (twice the forward
            pass), where the last layer and the head compute only [CLS] and the 15% masked tokens.
    """
    with torch.device("meta"):
        network = LatticeBertForPreTraining(config)
    bert = network.bert
    n_bias = network.token_bias.numel()  # the matrix of the token head is that of the embeddings, and counted there
    parameters = {
        "token embeddings": _n_parameters(bert.embeddings.tokens),
        "their projection": _n_parameters(bert.embeddings.projection),
        "type embeddings": _n_parameters(bert.embeddings.types, bert.embeddings.norm),
        "lattice positions": _n_parameters(bert.positions),
        "layers": _n_parameters(bert.layers),
        "pooler": _n_parameters(bert.pooler),
        "token head": _n_parameters(network.transform, network.transform_norm) + n_bias,
        "sentence head": _n_parameters(network.sentence),
    }
    if adapter is not None:
        parameters["word adapter"] = _n_parameters(adapter)
    n_tokens = round(n_chars * tokens_per_char)
    n_asked = round(n_tokens * MASK_PROB)
    embed = 2 * n_tokens * parameters["their projection"]
    layers = config.n_layers * _layer_flops(config, n_queries=n_tokens, n_keys=n_tokens)
    head = n_asked * 2 * bert.embeddings.tokens.embedding_dim * (config.width + config.n_tokens)
    last = _layer_flops(config, n_queries=1 + n_asked, n_keys=n_tokens)
    training = 3 * (embed + layers * (config.n_layers - 1) / config.n_layers + last + head)
    flops = {"projection": embed / n_chars, "layers": layers / n_chars}
    return {
        "parameters": parameters,
        "n_parameters": sum(parameters.values()),
        "n_chars": n_chars,
        "n_tokens": n_tokens,
        "flops": flops,
        "forward_flops": sum(flops.values()),
        "training_flops": training / n_chars,
    }


def _layer_flops(config: LatticeBertConfig, *, n_queries: int, n_keys: int) -> int:
    """Operations of a layer: queries, output and feed-forward network; keys and values; scores and weighted sums."""
    width = config.width
    by_query = 2 * width * width + 2 * width * config.inner_width
    return 2 * (n_queries * by_query + n_keys * 2 * width * width + 2 * n_queries * n_keys * width)


def _n_parameters(*modules: torch.nn.Module | None) -> int:
    return sum(p.numel() for module in modules if module is not None for p in module.parameters())
