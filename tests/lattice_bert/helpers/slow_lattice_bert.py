"""Lattice-BERT by its equations, §2.1 to 2.3, for one text, in plain loops."""

from __future__ import annotations

import math

from cige.lattice_bert.encoder.network import LatticeBert


def linear(module, x: list[float]) -> list[float]:
    rows = module.weight.tolist()
    bias = module.bias.tolist() if module.bias is not None else [0.0] * len(rows)
    return [sum(w * v for w, v in zip(row, x, strict=True)) + b for row, b in zip(rows, bias, strict=True)]


def normalised(module, x: list[float]) -> list[float]:
    mean = sum(x) / len(x)
    sd = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x))
    return [g * (v - mean) / sd + b for g, v, b in zip(module.weight.tolist(), x, module.bias.tolist(), strict=True)]


def gelu(v: float) -> float:
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


def plus(x: list[float], y: list[float]) -> list[float]:
    return [a + b for a, b in zip(x, y, strict=True)]


def slow_position_score(model: LatticeBert, i: tuple[int, int], j: tuple[int, int], head: int) -> float:
    config, positions = model.config, model.positions
    d = config.head_width
    scale = 1 / math.sqrt(2 * d if config.position_scale == "double" else d)

    def product(left: list[float], right: list[float]) -> float:
        query, key = linear(positions.query, left), linear(positions.key, right)
        return scale * sum(query[k] * key[k] for k in range(head * d, (head + 1) * d))

    if config.cls_reset and (0, 0) in (i, j):
        reset = positions.resets[1 if j == (0, 0) else 0].tolist()
        return product(reset, reset)
    place = [positions.starts.weight[s].tolist() + positions.ends.weight[e].tolist() for s, e in (i, j)]
    total = product(*place)
    if config.distances:
        clip = config.clip_distance
        for table, t in enumerate((j[0] - i[0], j[0] - i[1], j[1] - i[0], j[1] - i[1])):
            total += float(positions.distances[table, min(clip, max(-clip, t)) + clip, head])
    if config.relations == "paper":
        total += float(positions.relations[slow_relation(i, j), head])
    elif config.relations == "released":
        (s_i, e_i), (s_j, e_j) = i, j
        code = (s_j >= s_i) + 2 * (s_j > e_i) + 4 * (e_j >= s_i) + 8 * (e_j >= e_i) + 16 * (i == j)
        total += float(positions.relations[code, head])
    return total


def slow_relation(i: tuple[int, int], j: tuple[int, int]) -> int:
    (s_i, e_i), (s_j, e_j) = i, j
    if i == j:
        return 0
    if e_j < s_i:
        return 1
    if e_i < s_j:
        return 6
    if s_j <= s_i and e_i <= e_j:
        return 3
    if s_i <= s_j and e_j <= e_i:
        return 4
    return 2 if s_j < s_i else 5


def slow_encode(model: LatticeBert, ids: list[int], spans: list[tuple[int, int]], types: list[int]) -> list:
    config, d = model.config, model.config.head_width
    embeddings = model.embeddings
    hidden = []
    for token, kind in zip(ids, types, strict=True):
        x = embeddings.tokens.weight[token].tolist()
        if embeddings.projection is not None:
            x = linear(embeddings.projection, x)
        hidden.append(normalised(embeddings.norm, plus(x, embeddings.types.weight[kind].tolist())))
    scale = 1 / math.sqrt(2 * d if config.position_scale == "double" else d)
    for layer in model.layers:
        attention = layer.attention
        queries = [linear(attention.query, x) for x in hidden]
        keys = [linear(attention.key, x) for x in hidden]
        values = [linear(attention.value, x) for x in hidden]
        mixed = [[0.0] * config.width for _ in hidden]
        for head in range(config.n_heads):
            own = range(head * d, (head + 1) * d)
            for i in range(len(hidden)):
                score = [
                    scale * sum(queries[i][k] * keys[j][k] for k in own)
                    + slow_position_score(model, spans[i], spans[j], head)
                    for j in range(len(hidden))
                ]
                weights = [math.exp(s - max(score)) for s in score]
                for k in own:
                    mixed[i][k] = sum(w * v[k] for w, v in zip(weights, values, strict=True)) / sum(weights)
        hidden = [
            normalised(layer.attention_norm, plus(x, linear(attention.output, m)))
            for x, m in zip(hidden, mixed, strict=True)
        ]
        changed = [linear(layer.ff_out, [gelu(v) for v in linear(layer.ff_in, x)]) for x in hidden]
        hidden = [normalised(layer.ff_norm, plus(x, y)) for x, y in zip(hidden, changed, strict=True)]
    return hidden
