"""The flat lattice of FLAT §3.1."""

import numpy as np
from flat_lattice import flatten, recover

from cige.lattice.lattice import Lattice

LATTICE = Lattice(
    text="重庆人和药店", words=np.array([[0, 2, 0], [0, 3, 1], [2, 6, 2], [4, 6, 3]], np.int32), n_base=4, n_dropped=5
)


def test_head_and_tail_are_those_of_figure_1():
    flat = flatten(LATTICE)
    assert flat.head.tolist() == [0, 1, 2, 3, 4, 5, 0, 0, 2, 4]
    assert flat.tail.tolist() == [0, 1, 2, 3, 4, 5, 1, 2, 5, 5]
    assert flat.token.tolist() == [*map(ord, "重庆人和药店"), 0, 1, 2, 3]


def test_recovered():
    text, words = recover(flatten(LATTICE))
    assert text == LATTICE.text and words.tolist() == LATTICE.words.tolist()


def test_an_empty_lattice():
    text, words = recover(flatten(Lattice(text="", words=np.zeros((0, 3), np.int32), n_base=0)))
    assert text == "" and words.shape == (0, 3)
