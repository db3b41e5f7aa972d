"""What a run shows: names and lines as they are, whatever brackets they have."""

from cige.engine.progress import ProgressBar


def test_brackets_in_a_name_are_shown_and_are_no_markup(capsys):
    for name in ("weibo[v2]", "weibo[/v2]"):
        bar = ProgressBar(name, 3)
        bar.start(0)
        bar.say("epoch 1  f1 [old] 0.5")
        bar.stop()
        assert capsys.readouterr().err == f"{name}  epoch 1  f1 [old] 0.5\n"
        shown = bar._bar.make_tasks_table(bar._bar.tasks)
        bar._console.print(shown)
        assert f"{name} " in (text := capsys.readouterr().err) and "[old]" in text
