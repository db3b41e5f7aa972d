"""A random BERT small enough to write, train and run within a test."""

from __future__ import annotations

from pathlib import Path

import tiny
import torch

LETTERS = list("abcdefghijklmnopqrstuvwxyz0123456789")
CHINESE = sorted(set("".join(s.text for s in tiny.sentences(60)) + "".join(tiny.WORDS)))
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = list(dict.fromkeys([*SPECIAL, *LETTERS, "hello", "##a", "##b", "的", "𠮷", *CHINESE]))
N_POSITIONS = 20
TEXTS = ["李明在北京。", "", "王小红是罗氏公司的经理", "Ab \t𠮷龘é2"]


def write_bert(
    folder: Path,
    *,
    lower_case: bool = True,
    seed: int = 0,
    pooler: bool = True,
    n_positions: int = N_POSITIONS,
    n_layers: int = 1,
) -> Path:
    """Write config, weights and vocabulary as transformers writes them; returns `folder`."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    tokenizer = BertTokenizer.from_pretrained(folder, do_lower_case=lower_case)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=n_layers,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.5,
        max_position_embeddings=n_positions,
    )
    torch.manual_seed(seed)
    BertModel(config, add_pooling_layer=pooler).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
