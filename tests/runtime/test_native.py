"""The compiled libraries of the runtime: which is loaded, and how many threads there are."""

from __future__ import annotations

import pytest
from runtime_forms import FORMS

from cige.runtime import native


def test_a_library_that_was_not_built_has_no_path_and_no_sources_no_checksum(monkeypatch):
    assert native._path("of_no_level") is None and native.load("of_no_level") is None
    monkeypatch.setattr(native.Path, "glob", lambda self, pattern: iter(()))
    assert native.source_checksum() == 0


@pytest.mark.parametrize(
    ("given", "n"),
    [("3", 3), ("1", 1), ("4,2", 4), (" 2 , 1", 2), ("0", None), ("", None), ("two", None), ("-1", None), ("²", None)],
)
def test_the_number_of_threads(monkeypatch, given, n):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(native.os, "sched_getaffinity", lambda pid: set(range(7)), raising=False)
    assert native.n_threads() == (7 if n is None else n)


@pytest.mark.skipif(len(FORMS) == 1, reason="nothing was compiled")
def test_a_library_of_other_sources_is_not_used(monkeypatch):
    native.library.cache_clear()
    monkeypatch.setattr(native, "source_checksum", lambda: 12345)
    with pytest.warns(native.StaleBuildWarning, match="older than its sources"):
        assert native.load(FORMS[-1]) is None
    monkeypatch.setattr(native, "source_checksum", lambda: 0)  # an installation
    assert native.load(FORMS[-1]) is not None
    native.library.cache_clear()


def test_older_libraries_are_not_used(monkeypatch):
    def lacks_a_function(name):
        raise AttributeError("lstm_layer")

    monkeypatch.setattr(native, "library", lacks_a_function)
    assert all(native.load(form) is None for form in FORMS)


@pytest.mark.skipif(len(native.levels()) < 2, reason="one level only")
def test_a_library_that_cannot_be_loaded_is_replaced_by_that_of_a_lower_level(monkeypatch):
    *_, lower, best = native.levels()
    whole = native.library

    def library(name):
        if name == best:
            raise OSError("file too short")
        return whole(name)

    monkeypatch.setattr(native, "library", library)
    monkeypatch.delenv("CIGE_KERNELS", raising=False)
    native.level.cache_clear()
    with pytest.warns(
        native.StaleBuildWarning, match=rf"for {best} cannot be loaded \(file too short\); reinstall cige: "
    ):
        assert native.load() is whole(lower)
    with pytest.warns(native.StaleBuildWarning, match="cannot be loaded"):
        assert native.load(best) is None
    native.level.cache_clear()
