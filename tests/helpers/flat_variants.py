"""FLAT in every form that its settings give it, small, and texts that no form should read differently."""

from cige.models.flat_config import RELEASED

SMALL = {"n_heads": 4, "head_width": 8, "ff_width": 24}
VARIANTS: dict[str, dict] = {
    "paper": {},
    "released": RELEASED,
    "released, offset": RELEASED | {"position_offset": 30},
    "two layers": {"n_layers": 2},
    "three released layers": RELEASED | {"n_layers": 3},
    "no words": {"use_words": False},
    "no words, two layers": {"use_words": False, "n_layers": 2},
    "heads alone": {"distances": ("hh",)},
    "tails alone": {"distances": ("tt",)},
    "other order": {"distances": ("tt", "ht", "hh", "th")},
    "hidden matches": {"mask_self_matched": True},
    "hidden matches, two layers": {"mask_self_matched": True, "n_layers": 2},
    "near nodes": {"max_distance": 2},
    "near nodes, two layers": {"max_distance": 1, "n_layers": 2, "mask_self_matched": True},
    "near characters": {"max_distance": 1, "use_words": False},
    "nothing to see": {"max_distance": -1, "use_words": False},  # recipes refuse it; all forms read zeros
    "words that see words alone": {"max_distance": -2, "n_layers": 2},
    "nothing to see, biased": {"max_distance": -1, "use_words": False, "position_score": "bias"},
    "bias": {"position_score": "bias"},
    "bias, two layers": {"position_score": "bias", "n_layers": 2, "fusion_bias": True},
    "bias, no words": {"position_score": "bias", "use_words": False},
    "composed bigrams": {"bigram_backoff": True},
    "no bigrams": {"use_bigrams": False},
    "characters as words": {"char_words": True},
    "labels of words": {"word_labels": True},
    "labels of words, two layers": {"word_labels": True, "n_layers": 2},
    "gazetteers": {"gazetteers": True},
    "gazetteers and labels, two layers": {"gazetteers": True, "word_labels": True, "n_layers": 2},
    "labels without words": {"word_labels": True, "use_words": False},
}
TEXTS = [
    "李明在南京市长江大桥。",
    "",
    "重庆人和药店",
    "好",
    "今天天气很好的中国银行经理请了轩辕澜沧江渊瀚海说话，龘清华大学",
]
