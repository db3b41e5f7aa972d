"""The classes of pairs of characters in `nn.word_pairs`: none, next character, and a type of entity each."""

NONE, NEXT = 0, 1
N_RELATIONS = 2  # the types of entities begin here
