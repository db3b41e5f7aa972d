"""Add a word adapter to a BERT-our, whose characters then read words after one of its layers (LEBERT).

The words and their vectors come from a file of vectors. The new model is fine-tuned like any other, which trains the
adapter; a Lattice-BERT, by contrast, reads words at its input.

Example:
  cige lattice-bert pretrain adapter runs/tiny_bert_our/model --vectors vectors/word.npz --output runs/tiny_adapter
"""

from __future__ import annotations

import argparse

from cige.commands.options import at_least, refuse_own_folder, seed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a pre-trained model of characters: a folder or a hub id")
    parser.add_argument("--vectors", required=True, metavar="FILE", help="words with vectors (.npz, word2vec, folder)")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="where to write the model")
    parser.add_argument(
        "--after-layer",
        type=at_least(1),
        default=1,
        metavar="K",
        help="the layer after which words are read (default: 1)",
    )
    parser.add_argument(
        "--max-words",
        type=at_least(1),
        default=5,
        metavar="M",
        help="maximum words that a character reads (default: 5)",
    )
    parser.add_argument(
        "--words", type=at_least(1), metavar="N", help="take the first N words of the file (default: all)"
    )
    parser.add_argument(
        "--residual",
        choices=("normalised", "plain"),
        default="normalised",
        help="how words are added: as in the paper (normalised), or so that a new adapter changes nothing (plain)",
    )
    parser.add_argument("--seed", type=seed, default=1, help="of the adapter's initial weights (default: 1)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.folders.hub import model_folder
    from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert, add_adapter
    from cige.lattice_bert.encoder.word_adapter import WordAdapterConfig
    from cige.lexicon.vectors import VectorTable
    from cige.text.counted import counted

    folder = model_folder(args.model)
    refuse_own_folder(args.output, folder)
    pretrained, vectors = PretrainedLatticeBert.from_pretrained(folder), VectorTable.load(args.vectors)
    config = WordAdapterConfig(
        n_words=args.words or len(vectors),
        word_width=vectors.width,
        after_layer=args.after_layer,
        max_words=args.max_words,
        residual=args.residual,
    )
    made = add_adapter(pretrained, vectors, config, seed=args.seed)
    made.save(args.output)
    print(f"{counted(made.vocabulary.n_words, 'word')} of width {vectors.width}, read after layer {args.after_layer}")
    print(f"wrote {args.output}")
