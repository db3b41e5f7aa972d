"""web/lexicon.js: which label a user's own word has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from web_build import WEB

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")


def test_words_that_objects_have_as_properties_have_no_label():
    calls = [["constructor", "贺兰草"], {"toString": None, "贺兰草": "ORG"}]
    command = [NODE, Path(__file__).with_name("lexicon.mjs"), WEB / "lexicon.js"]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = [[["constructor", None], ["贺兰草", None]], [["toString", None], ["贺兰草", "ORG"]]]
    assert json.loads(done.stdout) == expected


def test_words_that_differ_by_marks_are_one_word():
    command = [NODE, Path(__file__).with_name("lexicon.mjs"), WEB / "lexicon.js"]
    calls = [["黑神话：悟空", "黑神话:悟空"], {"黑神话：悟空": "GAME", "黑神话:悟空": "PRODUCT"}]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[["黑神话:悟空", None]], [["黑神话:悟空", "GAME"]]]


def test_invisible_characters_within_words_do_not_matter():
    for text in ("在甲\u200b：乙", "\u200b甲：\u200b乙\u200b"):
        command = [NODE, Path(__file__).with_name("lexicon.mjs"), WEB / "lexicon.js", text]
        done = subprocess.run(command, input=json.dumps([["甲\u200b:乙\u200b"]]), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [[0, 1]]


def test_a_removed_word_comes_back_with_the_users_word_whatever_its_marks():
    command = [NODE, Path(__file__).with_name("lexicon.mjs"), WEB / "lexicon.js", "在甲：乙"]
    calls = [["丙丁"], ["甲：乙"], ["甲:乙"]]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[], [0, 1], [0, 1]]
