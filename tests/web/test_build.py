"""The folder for browsers: its pieces without a compiler, and what is said where something is missing."""

import json
import re
from dataclasses import replace

import pytest
import tiny
from web_build import WEB, build, pack_model

from cige.errors import ModelError
from cige.folders.hub import model_folder
from cige.models.soft_lexicon_config import SoftLexiconConfig


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A folder as `build` writes it, with an empty runtime."""
    monkeypatch.setattr(build, "compile_runtime", lambda to: to.write_bytes(b"\0asm"))
    monkeypatch.setattr(build, "rules", lambda: {})
    monkeypatch.setattr(pack_model, "GZIP_LEVEL", 1)  # it need not be small here
    build.build(tmp_path / "web")
    return tmp_path / "web"


def kept_files(out):
    worker = (out / "sw.js").read_text(encoding="utf-8")
    version = re.search(r'VERSION = "(\w{16})"', worker)
    return version[1], json.loads(re.search(r"FILES = (\[.*\]);", worker)[1])


def test_every_file_that_the_page_asks_for_is_kept_for_use_without_a_network(out):
    _, kept = kept_files(out)
    page, scripts = (out / "index.html").read_text(encoding="utf-8"), [path.read_text() for path in out.glob("*.js")]
    asked = {*re.findall(r'(?:src|href)="([\w.]+)"', page)}
    for script in scripts:
        asked |= {name.removeprefix("./") for name in re.findall(r'(?<!json\()"((?:\./)?\w+\.js(?:on)?)"', script)}
        asked |= {f"{name}.gz" for name in re.findall(r'(?:json|bytes)\("([\w./]+)"\)', script)}
        asked |= {f"model/{name}.gz" for name in re.findall(r'arrays\("([\w./]+)"\)', script)}
    asked -= {"sw.js"}
    assert {"page.js", "page.css", "worker.js", "cige.wasm.gz", "rules.json.gz"} <= asked <= {*kept}
    assert {"model/model.safetensors.gz", "model/lexicon/trie.safetensors.gz", "model/manifest.json.gz"} <= asked
    assert "./" in kept
    assert all((out / name).exists() for name in kept)


def test_the_version_changes_with_any_file(out):
    before, _ = kept_files(out)
    build.build(out)
    assert kept_files(out)[0] == before
    for name in build.WORKERS:
        (out / name).write_text((WEB / name).read_text())
    (out / "page.js").write_text("// another\n")
    build._list_kept_files(out)
    assert kept_files(out)[0] != before


def test_both_workers_know_the_same_version(out):
    version, _ = kept_files(out)
    assert f'const VERSION = "{version}";' in (out / "worker.js").read_text(encoding="utf-8")


def test_the_page_has_a_colour_for_every_label_and_loads_nothing_from_elsewhere(out):
    labels = json.loads((model_folder() / "manifest.json").read_text())["labels"]
    assert list(json.loads((out / "page.json").read_text())["colours"]) == labels
    for path in (*out.glob("*.js"), *out.glob("*.html"), *out.glob("*.css")):
        addresses = {*re.findall(r"https?://[\w.]*\w", path.read_text(encoding="utf-8"))}
        assert addresses <= {"http://localhost"}, path.name  # which page.js names to people


def test_both_languages_of_the_page_say_the_same_things(out):
    script, page = ((out / name).read_text(encoding="utf-8") for name in ("page.js", "index.html"))
    english, chinese = re.search(r"en: \{(.*?)\},\n  zh: \{(.*?)\},\n\};", script, re.DOTALL).groups()
    keys = [re.findall(r"(?:^|[{,]\s)\s*(\w+): ", said) for said in (english, chinese)]
    assert sorted(keys[0]) == sorted(keys[1])
    assert {*re.findall(r'data-(?:say|name)="(\w+)"', page)} <= {*keys[0]}


def test_a_model_that_browsers_cannot_read_and_a_missing_compiler_are_reported(tmp_path, monkeypatch):
    tiny.model(architecture="soft_lexicon", config=SoftLexiconConfig(lstm_width=32)).save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"architecture 'soft_lexicon'; a browser reads FLAT"):
        build.build(tmp_path / "web", str(tmp_path / "model"))
    tiny.model(config=replace(tiny.CONFIG, components=tiny.COMPONENTS)).save(tmp_path / "components")
    with pytest.raises(ModelError, match=r"with components of characters; a browser reads FLAT"):
        build.build(tmp_path / "web", str(tmp_path / "components"))
    monkeypatch.setattr(build, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install .*\[web\]"):
        build.build(tmp_path / "web")


def test_patterns_are_translated_or_refused():
    assert build.javascript(r"[^\W\d]").startswith("(?:(?![")
    with pytest.raises(ValueError, match="no form of"):
        build.javascript(r"\bword")
