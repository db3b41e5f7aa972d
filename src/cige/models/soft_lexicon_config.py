"""SoftLexiconConfig: the settings of SoftLexicon (`cige.models.soft_lexicon`), which can be read without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cige.models.config import ModelConfig, odd_widths


@dataclass(frozen=True, kw_only=True)
class SoftLexiconConfig(ModelConfig):
    """SoftLexicon's settings; widths and probabilities are those of the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters ("bichar" in the paper)."""
    lstm_width: int = 600
    """Width of the LSTM's output, half of it per direction; 400 for Weibo and Resume."""
    n_layers: int = 1
    """LSTM layers."""
    output_dropout_prob: float = 0.5
    """Dropout before the tag scores."""
    use_words: bool = True
    """False leaves out the word sets: the same model without words, a BiLSTM-CRF."""
    weighting: Literal["smoothed", "counts"] = "counts"
    """Weights in a set: 4 z / Z as in the paper, or the smoothed weights of its first version and DCSAN."""
    smoothing: float = 1.0
    """b of the smoothed weights (see DcsanConfig)."""
    tune_words: bool = True
    """Whether to train word vectors; False keeps all except the special ones fixed (released code)."""

    def problems(self) -> list[str]:
        problems = odd_widths(lstm_width=self.lstm_width)
        if self.smoothing < 0:
            problems.append(f"model.smoothing is {self.smoothing}, expected 0 or more")
        return problems
