"""The generator gives the same lexicon for the same seed, and the benchmark measures what it made."""

from benchmarks.parts import make_lexicon
from benchmarks.speed.lexicon import bench, table
from cige.lexicon.convert_vectors import build_with_vectors
from cige.lexicon.lexicon import Lexicon


def test_words_are_distinct_and_the_same_for_a_seed():
    n_real = len(make_lexicon.WordBlob.load(make_lexicon.BUNDLED))
    words = make_lexicon.make_words(n_real + 5000)
    assert len(set(words)) == len(words) == n_real + 5000
    assert words == make_lexicon.make_words(n_real + 5000)
    assert words[:1000] == make_lexicon.make_words(1000, seed=1)
    assert words[n_real:] != make_lexicon.make_words(n_real + 5000, seed=1)[n_real:]
    assert all(len(word) >= 4 for word in words[n_real:])


def test_vectors_and_sentences_use_the_words(tmp_path):
    words = make_lexicon.make_words(2500)
    make_lexicon.write_vectors(tmp_path / "v.txt", words, width=3, n_digits=2)
    report = build_with_vectors(tmp_path / "v.txt", tmp_path / "lex")
    lexicon = Lexicon.load(tmp_path / "lex")
    assert (report.n_taken, report.n_refused) == (2500, 0) and list(lexicon) == words
    sentences = list(make_lexicon.make_sentences(words, 20))
    assert sentences == list(make_lexicon.make_sentences(words, 20))
    assert all(43 <= len(sentence) <= 60 and len(lexicon.match(sentence)) >= 8 for sentence in sentences)


def test_the_benchmark_measures_every_size(tmp_path):
    result = bench(sizes=(300, 600), width=2, rounds=1, work_dir=str(tmp_path))
    assert [found["n_taken"] for found in result["sizes"]] == [300, 600]
    for found in result["sizes"]:
        assert found["n_matches"] > 0 and found["match_mb_per_s"] > 0 and found["load_s"] > 0
        assert found["vectors_mb"] * 1e6 == 128 + found["n_taken"] * 4
    assert list(tmp_path.iterdir()) == [], "what was made is deleted"
    rows = table(result["sizes"])
    assert len(rows) >= 18 and all(list(row) == ["figure", "300", "600", "last / first"] for row in rows)
