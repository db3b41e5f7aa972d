"""Streams of texts read by several threads: the same answers, in order, with errors and unfinished streams."""

from __future__ import annotations

import threading
from itertools import count, islice

import numpy as np
import pytest
import tiny

import cige
from cige.api import NER
from cige.runtime.native import n_threads, use_threads
from cige.runtime.native_model import NativeModel
from cige.tagging import streaming
from cige.tagging.selection import Request, select


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tiny.trained_model().save(folder)
    return NativeModel.load(folder)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(streaming, "GROUP_BATCHES", 1)


def read(model, texts, n, **options):
    stream = streaming.Stream(model, model.lexicon.snapshot(), select(Request(), model.labels, model.label_facts), 4)
    return stream.entities(texts, n, **options)


@pytest.mark.parametrize("n", [2, 5])
def test_threads_change_nothing(model, small_groups, n):
    texts = [sentence.text for sentence in tiny.sentences(203, seed=5)]
    texts[7:7] = ["", "。" * 700, texts[3] * 300]  # windows of one text are in several groups
    alone = list(read(model, texts, 1))
    assert list(read(model, texts, n)) == alone == [NER(model)(text) for text in texts]
    assert sum(map(len, alone)) > 100


def test_each_thread_is_started_and_few_texts_need_none(model, small_groups):
    started, main = [], threading.get_ident()
    texts = [sentence.text for sentence in tiny.sentences(40, seed=5)]
    list(read(model, texts, 2, start_thread=lambda: started.append(threading.get_ident())))
    assert 1 <= len(started) <= 2 and main not in started
    started.clear()
    list(read(model, texts[:3], 2, start_thread=lambda: started.append(threading.get_ident())))
    assert not started


def test_an_error_in_a_thread_reaches_the_caller_and_ends_the_threads(model, small_groups, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("no memory for a work buffer")

    monkeypatch.setattr(streaming, "predict_spans", fail)
    before = threading.active_count()
    with pytest.raises(MemoryError, match="work buffer"):
        list(read(model, ["小明在北京。"] * 50, 2))
    assert threading.active_count() == before


def test_an_endless_stream_is_read_ahead_a_little_and_may_be_left(model, small_groups):
    taken = count()
    before = threading.active_count()
    answers = read(model, (f"小明在北京{next(taken)}。" for _ in count()), 2)
    assert len(list(islice(answers, 20))) == 20
    assert next(taken) < 20 + 4 * (2 * 2 + 2) + 4
    answers.close()
    assert threading.active_count() == before


def test_a_compiled_model_reads_many_short_windows_in_one_call_and_few_long_ones(model, monkeypatch):
    calls = []
    find = NativeModel.find_spans
    monkeypatch.setattr(NativeModel, "find_spans", lambda *args: (calls.append(len(args[1])), find(*args))[1])
    short, long = ["小明在北京。"] * 600, ["小明在北京的一家公司工作了很久，" * 12] * 300
    options = {"selection": select(Request(), model.labels, model.label_facts), "batch_size": 64}
    for texts, most in ((short, streaming.MAX_AT_ONCE), (long, 150)):
        calls.clear()
        stream = streaming.Stream(model, model.lexicon.snapshot(), **options, is_compiled=True)
        answers = list(stream.entities(texts))
        assert sum(calls) == len(texts) and max(calls) <= most
        calls.clear()
        assert list(streaming.Stream(model, model.lexicon.snapshot(), **options).entities(texts)) == answers
    assert len(calls) > 1


def test_a_text_that_is_none_is_named(model, small_groups):
    with pytest.raises(TypeError, match="text 31 is bytes"):
        list(read(model, ["小明在北京。"] * 30 + [b"x"], 2))


def test_the_number_of_threads_is_that_of_the_thread_the_model_or_the_environment(model, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert (n_threads(), n_threads(5)) == (3, 5)
    found = []
    worker = threading.Thread(target=lambda: (use_threads(1), found.append(n_threads(5))))
    worker.start()
    worker.join()
    assert found == [1] and n_threads() == 3
    ner = cige.load(model.folder, n_threads=2)
    assert ner.model.n_threads == ner.model.network.n_threads == 2
    assert cige.load(model.folder, n_threads=np.int64(2)).model.n_threads == 2
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_threads"):
            cige.load(model.folder, n_threads=wrong)
    with pytest.raises(cige.ModelError, match="set_num_threads"):
        cige.load(model.folder, backend="torch", n_threads=2)
