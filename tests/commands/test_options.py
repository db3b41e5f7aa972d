"""What several verbs share: the model that --model names, and the numbers that options take."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

import pytest
from tiny import TEXT

from cige.cli import main
from cige.commands.options import at_least, minutes, origin, port, seconds, seed, share
from cige.folders.manifest import MANIFEST


@pytest.mark.parametrize("manifest", ['{"kind": ["a", "list"]}', "[" * 100_000, '{"kind": null}'])
def test_a_manifest_that_makes_no_sense_is_told(manifest, tmp_path, capsys):
    (tmp_path / MANIFEST).write_text(manifest, encoding="utf-8")
    assert main(["explain", "重庆", "--model", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "expected"),
    [
        (at_least(2), {"2": 2}, ["1", "2.5", "x"], "a whole number of at least 2"),
        (seconds, {"0.5": 0.5}, ["0", "-1", "inf", "nan", "x"], "seconds, more than 0"),
        (minutes, {"0": 0.0}, ["-1", "inf", "nan", "x"], "minutes, at least 0"),
        (port, {"0": 0, "65535": 65_535}, ["-1", "65536", "http", "80.0"], "a port from 0 to 65535"),
        (seed, {"0": 0, "20261127": 20_261_127}, ["-1", "1.0", str(2**63)], "a whole number from 0 to 2^63 - 1"),
        (share, {"0": 0.0, "1": 1.0}, ["-0.1", "1.1", "nan", "x"], "a number from 0 to 1"),
        (
            origin,
            {
                **{x: x.lower() for x in ("*", "https://Example.org", "http://localhost:8080", "https://a.org:80")},
                **{"http://[::1]:80": "http://[::1]", "HTTPS://a.org:443": "https://a.org"},
            },
            ["example.org", "https://a.org/", "https://a.org/b", "https://a.org:x", "https://*.a.org", "null", ""],
            "* or scheme://host",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_and_the_range_is_told(kind, right, wrong, expected):
    assert {text: kind(text) for text in right} == right
    for text in wrong:
        with pytest.raises(ArgumentTypeError, match=re.escape(f"given '{text}', expected {expected}")):
            kind(text)


@pytest.mark.parametrize("device", ["cuda", "gpu"])
@pytest.mark.parametrize("verb", ["predict", "evaluate", "train", "search", "compare"])
def test_a_device_that_is_not_there_is_told_in_one_line(run, data, monkeypatch, tmp_path, verb, device):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"data:\n  train: {data}\n  dev: {data}\n", encoding="utf-8")
    argv = {
        "predict": [TEXT],
        "evaluate": ["--data", data],
        "train": ["--data", data, "--output", tmp_path / "run"],
        "search": [recipe, "--output", tmp_path / "run", "--n-trials", "1"],
        "compare": [recipe, "--runs", tmp_path / "runs"],
    }[verb]
    code, _, err = run(verb, *argv, "--device", device)
    assert code == 2 and err.startswith("cige: device ") and err.count("\n") == 1
    assert "finds no GPU" in err
