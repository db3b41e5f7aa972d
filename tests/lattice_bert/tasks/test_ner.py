import itertools
import json
import math

import numpy as np
import pytest
import tiny_tasks as tiny
import torch

from cige.api import NER, load
from cige.cli import main
from cige.data.sentence import Sentence, Span
from cige.errors import ModelError
from cige.folders.manifest import write_manifest
from cige.lattice_bert.kinds import TUNED
from cige.lattice_bert.tasks.ner import TunedNER
from cige.lattice_bert.tasks.tagging import piece_chain
from cige.lattice_bert.tasks.tuned import ABOUT, FORMAT_VERSION

LABELLED = [Sentence("小明在北京", (Span(0, 2, "PER"), Span(3, 5, "LOC")))]


@pytest.fixture(scope="module", params=[False, True], ids=["softmax", "crf"])
def ner(request):
    model = tiny.tuned("entities", LABELLED, crf=request.param)
    torch.manual_seed(4)
    with torch.no_grad():
        model.network.head.linear.weight.normal_(0, 1)  # so that it finds something
        model.network.head.crf.transitions.normal_(0, 1 if request.param else 0)
    model.network.eval()
    return TunedNER(model)


def test_offsets_point_into_the_given_text(ner):
    texts = ["小明在北京", "", " \u3000", "他 在 2008 上海ab！\n小明", "ＡＩ研究生" * 30]
    found = ner(texts)
    assert any(found) and found[1] == found[2] == []
    for text, entities in zip(texts, found, strict=True):
        for entity in entities:
            assert text[entity.start : entity.end] == entity.text and entity.label in ner.labels
            assert 0 < entity.score <= 1
        assert all(a.end <= b.start for a, b in itertools.pairwise(entities))
    for others in ([ner(text) for text in texts], list(ner.pipe(iter(texts), batch_size=1))):
        for ours, theirs in zip(found, others, strict=True):
            assert [(e.start, e.end, e.label) for e in ours] == [(e.start, e.end, e.label) for e in theirs]
            assert [e.score for e in ours] == pytest.approx([e.score for e in theirs], abs=1e-5)


def test_scores_are_probabilities_over_all_legal_sequences(ner):
    text = "小明在"
    items, outputs = ner.model.read([Sentence(text)])[0]
    emissions, crf = piece_chain(items, outputs).emissions.astype(np.float64), ner.model.network.head.scores_of_tags()
    tags = ner.model.network.head.tags
    weights = {}
    for path in itertools.product(range(len(tags)), repeat=3):
        score = crf.start[path[0]] + crf.end[path[2]] + sum(emissions[k, tag] for k, tag in enumerate(path))
        score += crf.transitions[path[0], path[1]] + crf.transitions[path[1], path[2]]
        weights[path] = math.exp(score)
    total = sum(weights.values())
    best = max(weights, key=weights.get)
    entities = ner(text)
    assert [tags[t] for t in best] == entities_to_tags(entities)
    for e in entities:
        same = sum(w for path, w in weights.items() if path[e.start : e.end] == best[e.start : e.end])
        assert e.score == pytest.approx(same / total)


def entities_to_tags(entities):
    from cige.data.tags import spans_to_tags

    return spans_to_tags(3, [Span(e.start, e.end, e.label) for e in entities])


def test_saved_and_loaded(ner, tmp_path):
    ner.model.save(tmp_path / "model")
    again = TunedNER.from_pretrained(tmp_path / "model")
    assert again.labels == ["LOC", "PER"] and again("小明在北京2008") == ner("小明在北京2008")


def test_wrong_use(ner):
    with pytest.raises(TypeError, match="given one str"):
        ner.pipe("小明")
    with pytest.raises(TypeError, match="given int; expected str"):
        ner(["小明", 3])
    with pytest.raises(TypeError, match="given int; expected a str or a list of str"):
        ner(3)
    with pytest.raises(ValueError, match="batch_size=0"):
        ner.pipe([], batch_size=0)
    with pytest.raises(ModelError, match="finds no entities; expected one for entities or word segmentation"):
        TunedNER(tiny.tuned("reading", []))


def test_a_model_of_another_task_is_named_and_what_reads_it(tmp_path, capsys):
    tiny.tuned("reading", []).save(tmp_path / "model")
    for arguments in (["predict", "小明在北京"], ["info"]):
        assert main([*arguments, "--model", str(tmp_path / "model")]) == 2
        said = capsys.readouterr().err
        assert f"{tmp_path / 'model'}: this model was fine-tuned for" in said
        assert "`cige lattice-bert finetune predict` answers the examples of its task" in said


@pytest.mark.parametrize(
    ("room", "said"),
    [
        ({"max_tokens": None, "max_pieces": 99_999}, "at most the network's"),
        ({"max_tokens": 0, "max_pieces": 16}, "expected from 5"),
        ({"max_tokens": "64", "max_pieces": 16}, "config.max_tokens is '64'"),
    ],
)
def test_a_folder_whose_room_the_network_cannot_read(ner, room, said, tmp_path):
    ner.model.save(tmp_path / "model")
    about = json.loads((tmp_path / "model" / ABOUT).read_text(encoding="utf-8")) | {"room": room}
    (tmp_path / "model" / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    write_manifest(tmp_path / "model", kind=TUNED, version=FORMAT_VERSION)
    with pytest.raises(ModelError, match=said):
        load(tmp_path / "model")


def test_the_predict_command_reads_a_tuned_model(ner, tmp_path, capsys):
    from cige.cli import main

    ner.model.save(tmp_path / "tuned")
    text = "他 在 2008 上海ab！"
    assert main(["predict", text, "--model", str(tmp_path / "tuned"), "--format", "jsonl"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["text"] == text
    assert [(e["start"], e["end"], e["label"]) for e in line["entities"]] == [
        (e.start, e.end, e.label) for e in ner(text)
    ]
    assert main(["predict", text, "--model", str(tmp_path / "tuned"), "--words"]) == 2
    assert "without --lexicon-add and --words" in capsys.readouterr().err


def test_load_opens_a_fine_tuned_model(ner, tmp_path):
    ner.model.save(tmp_path / "model")
    found = load(tmp_path / "model")
    assert isinstance(found, TunedNER) and found.labels == ner.labels
    assert found("小明在北京") == ner("小明在北京")
    with pytest.raises(ModelError, match="opens as a TunedNER, which has no lexicon"):
        NER.from_pretrained(tmp_path / "model")


def test_a_fine_tuned_model_takes_no_user_words_and_the_error_names_what_reads_it(ner, tmp_path, capsys):
    ner.model.save(tmp_path / "model")
    (tmp_path / "words.txt").write_text("小明\n", encoding="utf-8")
    for arguments in (["explain"], ["predict", "--words"], ["predict", "--lexicon-add", str(tmp_path / "words.txt")]):
        assert main([*arguments, "小明在北京", "--model", str(tmp_path / "model")]) == 2
        said = capsys.readouterr().err
        assert "use `cige predict` without --lexicon-add and --words, `cige lattice-bert pretrain explain` for" in said
    assert main(["info", "--model", str(tmp_path / "model"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["labels"] == ner.labels
