"""What `cige train` and `cige search` hand on, and folders that they do not write to."""

import pytest


@pytest.mark.parametrize("options", [[], ["--no-resume"]])
def test_a_folder_of_somebody_else_is_not_written_to(run, data, tmp_path, options):
    foreign = tmp_path / "thesis"
    (foreign / "model").mkdir(parents=True)
    (foreign / "notes.txt").write_text("years of work")
    code, _, err = run("train", "--data", data, "--output", foreign, "--device", "cpu", *options)
    assert code == 2 and "with files that no run wrote (model, notes.txt)" in err
    assert sorted(p.name for p in foreign.iterdir()) == ["model", "notes.txt"]
    code, _, err = run("train", "--data", data, "--output", foreign / "notes.txt", "--device", "cpu")
    assert code == 2 and "notes.txt is a file; expected a folder" in err


def test_train_hands_its_options_on(run, monkeypatch, tmp_path):
    given = {}

    class Result:
        name, seed, dev_f1, best_epoch, seconds, model = "r", 3, 0.5, 1, 0.1, tmp_path

    def train(recipe, output, **options):
        given.update(options, n_epochs=recipe.training.n_epochs, output=output)
        return Result()

    monkeypatch.setattr("cige.training.train.train", train)
    (tmp_path / "r.yaml").write_text("data:\n  dataset: weibo\n", encoding="utf-8")
    argv = ["train", tmp_path / "r.yaml", "-o", tmp_path / "run", "--seed", "3", "--set", "training.n_epochs=2"]
    code, out, _ = run(*argv, "--data-dir", "d", "--device", "cpu", "--no-resume")
    assert code == 0 and "dev F1 50.00" in out
    assert given == {
        "seed": 3, "data_dir": "d", "device": "cpu", "resume": False, "n_epochs": 2, "output": str(tmp_path / "run"),
    }  # fmt: skip
    code, _, err = run(*argv[:-1], "training.n_epoch=2")
    assert code == 2 and "did you mean 'training.n_epochs'" in err


def test_search_hands_its_options_on(run, monkeypatch, tmp_path):
    from cige.training.search import SearchResult, Trial

    given = {}

    def search(recipe, output, **options):
        given.update(options)
        trial = Trial({"batches.batch_size": 8}, 0.5, tmp_path)
        return SearchResult(trial, (trial,), tmp_path / "best.yaml")

    monkeypatch.setattr("cige.training.search.search", search)
    (tmp_path / "r.yaml").write_text("data:\n  dataset: weibo\n", encoding="utf-8")
    (tmp_path / "space.yaml").write_text("batches.batch_size: [8, 10]\n", encoding="utf-8")
    argv = ["search", tmp_path / "r.yaml", "-o", tmp_path, "--n-trials", "2", "--space", tmp_path / "space.yaml"]
    out = run(*argv, "--seeds", "1", "2")[1]
    assert "50.00  batches.batch_size=8" in out and "best.yaml" in out
    assert (given["n_trials"], given["seeds"], given["space"]) == (2, [1, 2], {"batches.batch_size": [8, 10]})
