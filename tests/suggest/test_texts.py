"""What makes two texts equal or nearly so."""

from cige.suggest.texts import EDGE, NearDuplicates, bigrams, folded, shuffled, text_key


def test_keys_are_equal_for_what_looks_alike():
    assert text_key("張三在 ＡＢＣ") == text_key("张三在ABC")
    assert text_key("张三在北京") != text_key("李四在北京")
    assert text_key("2019年") != text_key("2020年")  # a fact differs, though the sentences are near-duplicates


def test_the_order_of_a_seed_is_another_than_that_of_the_next():
    keys = [text_key(str(number)) for number in range(50)]
    orders = [sorted(keys, key=lambda key: shuffled(key, seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2] and sorted(orders[2]) == sorted(keys)


def test_bigrams_of_a_stretch_reach_one_character_beyond_it():
    assert bigrams("abcd", 1, 3) == ["ab", "bc", "cd"]
    assert bigrams("abcd", 0, 1) == [f"{EDGE}a", "ab"]
    assert bigrams("abcd") == [f"{EDGE}a", "ab", "bc", "cd", f"d{EDGE}"]
    assert len(folded("２０１９年張😀")) == 7 and folded("2019年") == folded("1234年")


def test_near_duplicates_share_most_bigrams():
    seen = NearDuplicates()
    assert not seen.has(bigrams("今天北京晴转多云"))
    seen.add(bigrams(folded("今天北京晴转多云，最高气温12度")))
    assert seen.has(bigrams(folded("今天北京晴转多云，最高气温35度")))
    assert seen.has(bigrams(folded("今天北京晴转多云，最高气温12度。")))
    assert not seen.has(bigrams(folded("今天北京有雨")))
    assert not seen.has(bigrams(folded("张桂梅在云南")))


def test_texts_that_share_exactly_the_threshold_are_near_duplicates():
    seen = NearDuplicates()
    seen.add([str(gram) for gram in range(10)])
    assert seen.has([str(gram) for gram in range(7)])  # 7 of 10 bigrams, the threshold of 0.7
    assert not seen.has([str(gram) for gram in range(6)])
    assert not NearDuplicates().has([])
