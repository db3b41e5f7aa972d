"""Features of a pre-trained BERT: a vector for each character, from any encoder that transformers' AutoModel reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cige.errors import ModelError
from cige.folders.hub import model_folder
from cige.folders.kinds import find_kind
from cige.folders.manifest import kind_of
from cige.nn.char_features import BetweenLayers, CharFeatures, CharPlaces
from cige.text.windows import overlapping_windows

_PROBES = 8  # Chinese characters with which a tokenizer is checked

# The change that the current forward pass makes between two layers. Hooks on the layers read it here, because the
# models of transformers pass nothing on to their layers; a context is of one thread, so others can read meanwhile.
_CURRENT: ContextVar[tuple[BetweenLayers, CharPlaces] | None] = ContextVar("between_layers", default=None)


class BertFeatures(CharFeatures):
    """Returns the last hidden state of each character of a lattice batch.

    Each character is one token, because word pieces of several letters or digits would not have one vector per
    character. Characters without a token (whitespace, control characters, characters that the BERT does not know) are
    represented by the unknown token. [CLS] and [SEP] are added, and their states are removed. A text with more
    characters than the BERT has positions is read in overlapping windows; each character's vector comes from the window
    in which it has more context. `bert` is a model with `last_hidden_state`, such as those of AutoModel.

    Raises:
        ModelError: the tokenizer does not have tokens for single Chinese characters.
    """

    def __init__(self, *, bert: nn.Module, tokenizer: Any, tuned: bool):
        super().__init__()
        bert.pooler = None  # type: ignore[assignment]  # the pooled vector is not used here
        self.bert = bert.requires_grad_(tuned)
        self.tokenizer = tokenizer
        self.tuned = tuned
        self.width = bert.config.hidden_size  # type: ignore[union-attr, assignment]
        n_positions = getattr(bert.config, "max_position_embeddings", 512)
        self.n_chars_at_once = int(min(n_positions, tokenizer.model_max_length)) - 2  # type: ignore[type-var, operator]
        self._ids: dict[str, int] = {}  # a cache that grows with the characters that are read
        self._check_tokenizer()
        layers = list(getattr(getattr(bert, "encoder", None), "layer", []))  # BERT, RoBERTa, ELECTRA and their like
        self.n_layers = len(layers)
        for number, layer in enumerate(layers, start=1):
            layer.register_forward_hook(partial(_after_layer, number))
        self.train(self.training)

    @classmethod
    def load(cls, path_or_hub_id: Path | str, *, tuned: bool, local_only: bool = False) -> BertFeatures:
        """Read a folder that `save_pretrained` (ours or transformers') wrote, or a model of the Hugging Face hub.

        Raises:
            ModelError: transformers is not installed, there is no such model, or it is incomplete.
        """
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as reason:
            raise ModelError(f'BERT features need transformers ({reason}); run: pip install "cige[bert]"') from reason
        name, options = str(path_or_hub_id), {"local_files_only": local_only or Path(path_or_hub_id).is_dir()}
        try:
            with _quiet():
                bert, report = AutoModel.from_pretrained(name, output_loading_info=True, **options)
                tokenizer = AutoTokenizer.from_pretrained(name, **options)
        except Exception as reason:  # transformers raises exceptions of many types for damaged folders
            cause = [*str(reason).strip().splitlines(), type(reason).__name__][0]
            raise ModelError(
                f"{name}: not a BERT that can be read ({cause}); expected a folder with config.json, "
                "weights and vocabulary, or a hub id such as google-bert/bert-base-chinese and a network to fetch it"
            ) from reason
        missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
        if missing:
            raise ModelError(f"{name}: {len(missing)} weights of its network are missing, {missing[0]} is the first")
        return cls(bert=bert.float(), tokenizer=tokenizer, tuned=tuned)

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder that `load` can read without a network connection."""
        with _quiet():
            self.bert.save_pretrained(folder)  # type: ignore[operator]
            self.tokenizer.save_pretrained(folder)

    def read(self, texts: Sequence[str], device: torch.device, between: BetweenLayers | None) -> Sequence[Tensor]:
        plan = _WindowPlan([len(text) for text in texts], n_at_once=self.n_chars_at_once)
        if not plan.windows:
            return [torch.zeros(0, self.width, device=device) for _ in texts]
        ids, mask = self._tokens(texts, plan, device)
        current = None
        if between is not None:
            current = between, plan.char_places(ids.shape[0], ids.shape[1], ids.device)
        before = _CURRENT.set(current)
        try:
            with nullcontext() if self.tuned or between is not None else torch.no_grad():
                hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state[:, 1:].float()  # without [CLS]
        finally:
            _CURRENT.reset(before)
        window, place = (torch.from_numpy(x).to(ids.device) for x in (plan.window, plan.place))
        vectors = hidden[window, place]  # [B, T, width]
        return [vectors[k, : len(text)] for k, text in enumerate(texts)]

    def token_ids(self, text: str) -> list[int]:
        """One token id per character."""
        new = sorted(set(text) - self._ids.keys())
        readable = [c for c in new if not "\ud800" <= c <= "\udfff"]  # tokenizers do not accept lone surrogates
        pieces = self.tokenizer(readable, add_special_tokens=False)["input_ids"] if readable else []
        known = {c: piece[0] for c, piece in zip(readable, pieces, strict=True) if len(piece) == 1}
        # At once: another thread must not find a character that is unknown only until the tokenizer has read it.
        self._ids |= dict.fromkeys(new, self.tokenizer.unk_token_id) | known
        return [self._ids[c] for c in text]

    def _tokens(self, texts: Sequence[str], plan: _WindowPlan, device: torch.device) -> tuple[Tensor, Tensor]:
        """Ids and mask, int64[windows, L], of [CLS] characters [SEP] and padding for each window."""
        longest = max(end - start for _, start, end in plan.windows) + 2
        ids = np.full((len(plan.windows), longest), self.tokenizer.pad_token_id or 0, np.int64)
        mask = np.zeros_like(ids)
        for row, (sentence, start, end) in enumerate(plan.windows):
            n = end - start + 2
            inner = self.token_ids(texts[sentence][start:end])
            ids[row, :n] = [self.tokenizer.cls_token_id, *inner, self.tokenizer.sep_token_id]
            mask[row, :n] = 1
        return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)

    def _check_tokenizer(self) -> None:
        tokenizer = self.tokenizer
        if None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.unk_token_id):
            raise ModelError("this tokenizer has no [CLS], [SEP] or [UNK]; expected that of a BERT")
        chinese = sorted(t for t in tokenizer.get_vocab() if len(t) == 1 and "\u4e00" <= t <= "\u9fff")[:_PROBES]
        if all(token == tokenizer.unk_token_id for token in self.token_ids("".join(chinese))):
            raise ModelError(
                "this tokenizer reads no Chinese character as one token: either its vocabulary file is missing, or it "
                "is not the tokenizer of a Chinese BERT"
            )
        if len(tokenizer) > self.bert.get_input_embeddings().num_embeddings:  # type: ignore[operator]
            raise ModelError(f"this tokenizer has {len(tokenizer)} tokens, more than the BERT model has")


def load_features(path_or_hub_id: Path | str, *, tuned: bool, local_only: bool = False) -> CharFeatures:
    """The features that a recipe names under `bert:`: a folder of cige, such as a Lattice-BERT, or any BERT.

    Args:
        path_or_hub_id: the folder of an encoder or of the run that trained it, or a hub id.
        local_only: whether the hub is not asked for what is not on this disk.

    Raises:
        ModelError: there is no such model, it is incomplete, or it is a model of cige without an encoder.
    """
    if not Path(path_or_hub_id).is_dir():
        return BertFeatures.load(path_or_hub_id, tuned=tuned, local_only=local_only)
    path = model_folder(Path(path_or_hub_id))
    name = kind_of(path)
    if (kind := find_kind(name)) is None:
        return BertFeatures.load(path, tuned=tuned, local_only=local_only)
    if kind.load_features is None:
        raise ModelError(
            f"{path}: holds {name!r}, which has no encoder whose vectors another model can read; expected a BERT, or "
            "a pre-trained or fine-tuned Lattice-BERT"
        )
    features: CharFeatures = kind.load_features(path, tuned=tuned, local_only=local_only)
    return features


class _WindowPlan:
    """The windows of a batch, and the window from which each character gets its vector.

    Attributes:
        windows: (sentence, start, end) of each window, of at most `n_at_once` characters.
        window, place: int64[B, T], the window of each character and its index in the window; 0 for padding.
    """

    def __init__(self, lengths: list[int], *, n_at_once: int):
        n_padded = max(lengths, default=0)
        self.windows: list[tuple[int, int, int]] = []
        self.window = np.zeros((len(lengths), n_padded), np.int64)
        self.place = np.zeros((len(lengths), n_padded), np.int64)
        for sentence, n in enumerate(lengths):
            for w in overlapping_windows(n, n_at_once):
                core = slice(w.core_start, w.core_end)
                self.window[sentence, core] = len(self.windows)
                self.place[sentence, core] = np.arange(w.core_start - w.start, w.core_end - w.start)
                self.windows.append((sentence, w.start, w.end))

    def char_places(self, n_rows: int, n_places: int, device: torch.device) -> CharPlaces:
        """The characters of the rows [CLS] characters [SEP] of all windows."""
        chars = np.full((n_rows, n_places), -1, np.int64)
        core = np.zeros((n_rows, n_places), bool)
        for row, (sentence, start, end) in enumerate(self.windows):
            chars[row, 1 : 1 + end - start] = np.arange(start, end)
            core[row, 1 : 1 + end - start] = self.window[sentence, start:end] == row
        sentences = np.array([sentence for sentence, _, _ in self.windows], np.int64)
        return CharPlaces(*map(torch.from_numpy, (sentences, chars, core))).to(device)


def _after_layer(number: int, layer: nn.Module, inputs: Any, output: Any) -> Any:
    """A hook: the output of a layer, or what the current forward pass changes it to."""
    current = _CURRENT.get()
    if current is None or current[0].after_layer != number:
        return output
    between, places = current
    if isinstance(output, tuple):  # transformers before version 5
        return (between.change(output[0], places), *output[1:])
    return between.change(output, places)


@contextmanager
def _quiet() -> Iterator[None]:
    """A context without progress bars and messages about unused weights; problems are raised as errors."""
    from transformers.utils import logging

    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()
