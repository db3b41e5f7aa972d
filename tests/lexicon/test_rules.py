"""Rules: where forced and blocked words are, compared with a slow search."""

from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cige.lexicon.lexicon import Lexicon
from cige.lexicon.rules import NO_RULES, ForcedSpan, Rules
from cige.lexicon.user_word import UserWord


def of_words(words) -> SimpleNamespace:
    lexicon = Lexicon.from_words([])
    lexicon.add_entries(*words)
    return SimpleNamespace(find=lexicon.snapshot().rules)


def book(*, force=(), block=(), mode="block_exact") -> SimpleNamespace:
    words = [UserWord(word, "X", "force") for word in force] + [UserWord(word, None, mode) for word in block]
    evidence = UserWord("甲乙", "X")
    return of_words(words if evidence.text in (*force, *block) else [evidence, *words])


def places(rules: Rules) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in rules.forced]


@pytest.mark.parametrize(
    ("force", "text", "found"),
    [
        (["天津", "天津大学", "大学城"], "天津大学城", [(0, 4)]),  # the longest
        (["天津大", "大学城"], "天津大学城", [(0, 3)]),  # of one length the first
        (["甲乙", "乙丙丁", "丁戊"], "甲乙丙丁戊", [(1, 4)]),
        (["甲乙", "乙丙丁戊", "丁戊"], "甲乙丙丁甲乙", [(0, 2), (4, 6)]),
        (["苹", "苹果"], "苹果苹", [(0, 2), (2, 3)]),
        (["啊啊"], "啊啊啊啊啊", [(0, 2), (2, 4)]),
        (["AI", "B"], "BAIDU用AI和B", [(6, 8), (9, 10)]),  # no letter out of a Latin word
        (["ＡＩ"], "用ai", []),
        (["]", "^", "-", "\\"], "a]^-\\", [(1, 2), (2, 3), (3, 4), (4, 5)]),  # as one-character words
    ],
)
def test_of_forced_words_that_overlap_the_longest_holds(force, text, found):
    assert places(book(force=force).find(text)) == found


def test_invisible_characters_within_words_do_not_matter():
    rules = book(force=["天津大学"], block=["长江"], mode="block").find("天津大\u200b学在长\u00ad江")
    assert places(rules) == [(0, 5)]
    assert {(6, 7), (6, 9), (8, 9)} <= {*rules.blocked}


def test_blocked_stretches_are_those_beside_forced_ones():
    rules = book(force=["天津大学"], block=["天津", "学", "大"]).find("天津的天津大学大")
    assert places(rules) == [(3, 7)]
    assert rules.blocked == ((0, 2), (7, 8))


def test_what_lies_inside_a_blocked_word_is_blocked_too():
    rules = book(block=["天津大", "大学"], mode="block").find("在天津大学")
    assert rules.blocked == ((1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5))


def test_a_blocked_word_is_blocked_beside_and_around_what_is_forced_in_it():
    rules = book(force=["津大"], block=["天津大学"], mode="block").find("天津大学")
    assert rules.blocked == ((0, 1), (3, 4)) and rules.blocked_around == ((0, 3), (0, 4), (1, 4))
    assert rules.within(1, 4).blocked == ((2, 3),) and rules.within(1, 4).blocked_around == ((0, 3),)
    exact = book(force=["津大"], block=["天津大学", "大学", "学"]).find("天津大学")
    assert exact.blocked == ((3, 4),) and exact.blocked_around == ((0, 4),)  # 大学 overlaps 津大, which wins


def test_typed_words_have_a_label_where_nothing_is_forced():
    words = [UserWord("天津", "GAME", "type"), UserWord("津大学", "X", "type"), UserWord("大学", "ORG", "force")]
    rules = of_words(words).find("天津天津大学")
    assert rules.typed == (ForcedSpan(0, 2, "GAME"), ForcedSpan(2, 4, "GAME"))
    assert rules.within(2, 6).typed == (ForcedSpan(0, 2, "GAME"),)
    assert rules.within(2, 4).typed == (ForcedSpan(0, 2, "GAME"),)  # up to the very end of the window
    assert rules.within(1, 3).typed == () and rules.within(2, 3).typed == ()
    rules = of_words([UserWord("天津大学", "SCHOOL", "type"), UserWord("天津", "LOC", "force")]).find("在天津大学")
    assert rules.typed == () and rules.typed_around == (ForcedSpan(1, 5, "SCHOOL"),)
    assert rules.within(1, 5).typed_around == (ForcedSpan(0, 4, "SCHOOL"),) and rules.within(1, 4).typed_around == ()


def test_a_lexicon_without_such_words_has_no_rules():
    lexicon = Lexicon.from_words(["天津"])
    lexicon.add("甲乙", label="X")
    assert lexicon.snapshot().rules("甲乙天津") is NO_RULES
    lexicon.add("津", label="LOC", mode="force")
    lexicon.add("天津", mode="block")
    rules = lexicon.snapshot().rules("在天津，天")
    assert rules == Rules((ForcedSpan(2, 3, "LOC"),), ((1, 2),), (), ((1, 3),))  # but for what is forced
    lexicon.remove("津")
    assert lexicon.snapshot().rules("在天津").blocked == ((1, 2), (1, 3), (2, 3))


WORDS = st.lists(st.text("甲乙丙", min_size=1, max_size=4), max_size=5, unique=True)


@given(st.text("甲乙丙", max_size=12), WORDS, st.integers(0, 5))
def test_the_same_as_a_slow_search(text, words, n_forced):
    force, block = words[:n_forced], words[n_forced:]
    everywhere = [(a, b) for a in range(len(text)) for b in range(a + 1, len(text) + 1)]
    forced: list[tuple[int, int]] = []
    for a, b in sorted(everywhere, key=lambda place: (place[0] - place[1], place[0])):
        if text[a:b] in force and all(b <= c or a >= d for c, d in forced):
            forced.append((a, b))
    rules = book(force=force, block=block).find(text)
    assert places(rules) == sorted(forced)
    beside = [(a, b) for a, b in everywhere if text[a:b] in block and all(b <= c or a >= d for c, d in forced)]
    assert list(rules.blocked) == sorted(beside)
    inside = {
        (c, d) for a, b in everywhere if text[a:b] in block for c, d in everywhere if a <= c and d <= b
    }  # a blocked word blocks all that lies inside it
    rules = book(force=force, block=block, mode="block").find(text)
    assert list(rules.blocked) == sorted(x for x in inside if all(x[1] <= c or x[0] >= d for c, d in forced))
    assert list(rules.blocked_around) == sorted(
        x for x in inside if any(x[0] <= c and d <= x[1] and x != (c, d) for c, d in forced)
    )


@given(st.text("甲乙丙", max_size=12), WORDS, st.integers(0, 5), st.integers(0, 12), st.integers(0, 12))
@example("丙丙", ["丙丙"], 1, 1, 0)
def test_the_rules_of_a_part(text, words, n_forced, start, length):
    rules, end = book(force=words[:n_forced], block=words[n_forced:]).find(text), start + length
    part = rules.within(start, end)
    assert [(a + start, b + start) for a, b in places(part)] == [
        (a, b) for a, b in places(rules) if a < end and b > start and length
    ]
    assert [(a + start, b + start) for a, b in part.blocked] == [
        (a, b) for a, b in rules.blocked if start <= a and b <= end
    ]
