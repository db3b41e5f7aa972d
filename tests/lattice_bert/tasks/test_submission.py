import json

from cige.data.sentence import Sentence, Span
from cige.lattice_bert.tasks import submission
from cige.lattice_bert.tasks.examples import Answer, ChoiceExample, ReadingExample, TextExample


def test_labels():
    examples = [TextExample("0", "a"), TextExample("x7", "b")]
    lines = submission.labels(examples, ["true", "104"]).splitlines()
    assert [json.loads(line) for line in lines] == [{"id": 0, "label": "true"}, {"id": "x7", "label": "104"}]


def test_options():
    blanks = [ChoiceExample("#idiom000001#", ()), ChoiceExample("#idiom000002#", ())]
    assert json.loads(submission.options(blanks, [3, 0])) == {"#idiom000001#": 3, "#idiom000002#": 0}
    assert json.loads(submission.options([ChoiceExample("12", ())], [2])) == {"id": 12, "label": 2}


def test_texts():
    found = submission.texts([ReadingExample("TRIAL_1", "谁？", "他在北京")], [Answer("北京", 2)])
    assert json.loads(found) == {"TRIAL_1": "北京"}


def test_entities_and_words():
    sentence = Sentence("小明 在北京")
    found = json.loads(submission.entities([sentence], [[Span(4, 6, "LOC")]]))
    assert found == {"text": "小明 在北京", "label": {"LOC": {"北京": [[4, 5]]}}}
    spans = [Span(0, 2, "WORD"), Span(3, 4, "WORD"), Span(4, 6, "WORD")]
    assert submission.words([Sentence("小明\u200b在北京")], [spans]) == "小明 \u200b 在 北京\n"
    assert submission.words([Sentence("小明")], [[]]) == "小明\n"
