"""How long pre-training takes on many GPUs, simulated from measured rates, once that has predicted a measured run.

First the parts of a step are measured one by one on this machine (making instances, passes, updates, planning,
checkpoints), and the simulator predicts from them the processor seconds of steps of `pretrain` with the same recipe,
which are then measured. The prediction should be within 15%. The tables for GPUs take the rates of GPUs from
docs/bench/gpu/pretrain_bf16.json and what --help names as assumed. docs/scaling.md explains them.
"""

import json
import random
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch

from benchmarks.measure import seconds_of
from benchmarks.parts.scaling_model import Job, Rates, simulate
from cige.engine.checkpoint import CheckpointWriter
from cige.engine.history import RunState
from cige.engine.optimizer import clip_gradients, make_optimizer
from cige.lattice_bert.encoder.costs import describe
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network import SIZES
from cige.lattice_bert.pretraining.data import PretrainingData, open_data
from cige.lattice_bert.pretraining.make_data import make_data
from cige.lattice_bert.pretraining.make_shard import DataSettings
from cige.lattice_bert.pretraining.objective import PretrainingObjective
from cige.lattice_bert.pretraining.pretrain import pretrain
from cige.lattice_bert.pretraining.recipe import PretrainRecipe, load_pretrain_recipe
from cige.nn.memory import keep_freed_memory

TABLES = {
    "rows": "base size, the paper's 100,000 steps of 8,192 instances",
    "annotation": "1 TB of Chinese text annotated by the bundled model on processor cores",
}
BENCH = Path(__file__).parents[2] / "docs/bench"
GPU, RUNTIME = BENCH / "gpu/pretrain_bf16.json", BENCH / "runtime.json"
MOST = 0.15  # by which a prediction may differ from the measurement
N_DOCUMENTS = 2000
CORPUS, FILL = 18.3e9, 0.93  # characters of the paper's corpus; share of an instance's length that is filled
BYTES = 3  # of a Chinese character in UTF-8
NODE = 8  # GPUs of a machine
GPU_COUNTS = (8, 64, 256)


def bench(
    *,
    steps: Annotated[int, "of the run that is predicted"] = 24,
    nvlink: Annotated[float, "bytes/s of a GPU within a machine, assumed"] = 200e9,
    fabric: Annotated[float, "bytes/s of a GPU between machines, assumed"] = 25e9,
    disk: Annotated[float, "bytes/s of a process to shared storage, assumed"] = 1e9,
    overlap: Annotated[float, "share of the exchange that passes hide, assumed"] = 0.5,
    dollars: Annotated[float, "of a GPU for an hour, assumed"] = 2.5,
    core_dollars: Annotated[float, "of a core for an hour, assumed"] = 0.04,
    threads: int = 1,
) -> dict[str, Any]:
    """The prediction of this machine's run, and the tables."""
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        here = measured_here(made_up_data(Path(folder)), Path(folder), n_steps=steps)
    error = here["predicted"] / here["measured"] - 1
    met = "met" if abs(error) <= MOST else "missed"
    print(f"{steps} steps: predicted {here['predicted']:.1f} s, measured {here['measured']:.1f} s of one core;")
    print(f"expected: within {MOST:.0%}: {error:+.1%}, {met}")
    assumed = {"nvlink": nvlink, "fabric": fabric, "disk": disk, "overlap": overlap, "dollars": dollars}
    assumed["core_dollars"] = core_dollars
    rows = plans(here["rates"], assumed)
    return {"here": here, "assumed": assumed, "rows": rows, "annotation": annotation(core_dollars)}


def made_up_data(folder: Path) -> PretrainingData:
    """Documents of made-up words over a vocabulary of about the paper's shape, at a tenth of its size."""
    rng = random.Random(0)
    characters = [chr(0x4E00 + k) for k in range(2000)]
    words = list({"".join(rng.choices(characters, k=rng.choice((2, 2, 2, 3, 4)))) for _ in range(8000)})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "。", "，", *characters]
    JointVocabulary.build(pieces, words).save(folder / "vocabulary")

    def line() -> str:
        return "".join(rng.choices(words, k=6)) + "，" + "".join(rng.choices(words, k=5)) + "。"

    documents = ["\n".join(line() for _ in range(rng.randint(3, 12))) for _ in range(N_DOCUMENTS)]
    (folder / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    settings = DataSettings(segment_words=False, shard_size=60_000)
    make_data([folder / "corpus.txt"], folder / "vocabulary", folder / "data", settings=settings, show_progress=False)
    return open_data(folder / "data")


def recipe_of(n_steps: int) -> PretrainRecipe:
    """cpu_tiny without evaluation, and with checkpoints."""
    settings = {"short.n_steps": n_steps, "long.n_steps": 0, "training.precision": "fp32"}
    settings |= {"training.n_eval_instances": 0, "checkpoints.every": "8 steps", "schedule.warmup": "1 steps"}
    return load_pretrain_recipe("pretrain/cpu_tiny", settings)


def measured_here(data: PretrainingData, folder: Path, *, n_steps: int) -> dict[str, Any]:
    """Rates of this machine, and the processor seconds of a run: predicted by them, and measured."""
    recipe = recipe_of(n_steps)

    def seconds(n: int) -> float:
        options: dict[str, Any] = {"device": "cpu", "show_progress": False}
        return seconds_of(lambda: pretrain(recipe_of(n), data.folder, folder / f"run-{n}", **options))[1]

    seconds(1)  # what the first run of a process loads and builds
    few, before = seconds(2), asdict(rates_of(recipe, data, folder))
    measured, after = seconds(n_steps + 2) - few, asdict(rates_of(recipe, data, folder))
    # The machine's speed changes from minute to minute, so the rates are taken before and after.
    rates = Rates(**{name: (value + after[name]) / 2 for name, value in before.items()})
    job = Job(n_steps, recipe.short.batch_size, save_every=8)
    found = {"job": asdict(job), "rates": asdict(rates), "predicted": simulate(job, rates).total}
    return found | {"measured": measured}


def rates_of(recipe: PretrainRecipe, data: PretrainingData, folder: Path) -> Rates:
    """Processor seconds of each part of a step, of one core."""
    torch.manual_seed(0)
    model = LatticeBertForPreTraining(replace(recipe.model, n_tokens=len(data.vocabulary)))
    optimizer = make_optimizer(model, recipe.optimizer)
    made: dict[str, Any] = {}

    def plan() -> None:
        made["objective"] = PretrainingObjective(recipe.short, recipe, data, seed=1)
        made["batches"] = made["objective"].plan.batches(0)

    def make() -> None:
        made["batch"] = made["objective"].read(0, made["numbers"])

    def compute() -> None:
        losses, _ = made["objective"].losses(model, made["batch"])
        (losses / torch.tensor(made["objective"].weights(made["batch"])).clamp(min=1)).sum().backward()

    def update() -> None:
        clip_gradients(model.parameters(), recipe.optimizer)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    planning = seconds_of(plan)[1] / sum(map(len, made["batches"]))
    rounds = []
    for numbers in made["batches"][:10]:
        made["numbers"] = numbers
        rounds.append([seconds_of(part)[1] for part in (make, compute, update)])
    make_s, compute_s, update_s = (sum(taken) / len(taken) for taken in zip(*rounds[2:], strict=True))
    writer = CheckpointWriter(folder / "written", origin="", n_kept=1, in_background=False)
    values = {"weights": dict(model.named_parameters()), "optimizer": optimizer.state_dict()}
    state = 12.0 * sum(p.numel() for p in model.parameters())
    copy = state / seconds_of(lambda: writer.write(RunState(step=1), values))[1]  # with what writing takes
    n = recipe.short.batch_size
    return Rates(make_s / n, compute_s / n, update_s, planning, state=state, copy=copy)


def plans(here: dict[str, Any], assumed: dict[str, float]) -> list[dict[str, Any]]:
    """Hours and dollars of base size on GPUs.

    The share of a GPU's peak that passes reach was measured at lite size; base size, with wider products, should reach
    more. So each row is computed with that share, and with one four times as large.
    """
    gpu = json.loads(GPU.read_text(encoding="utf-8"))
    lite, base = describe(SIZES["lite"], n_chars=128), describe(SIZES["base"], n_chars=128)
    reached = lite["training_flops"] * gpu["rows"][0]["characters a second"]  # operations per second
    n = base["n_parameters"]
    common = {"plan": here["plan"], "gradient": 4.0 * n, "state": 12.0 * n, "copy": 10e9, "disk": assumed["disk"]}
    common["update"] = gpu["rows"][0]["ms an update"] / 1e3 * n / lite["n_parameters"]
    rows = []
    for n_gpus, share in ((n_gpus, share) for n_gpus in GPU_COUNTS for share in (1, 4)):
        network = assumed["nvlink"] if n_gpus <= NODE else assumed["fabric"]
        job = Job(2000, 8192, n_processes=n_gpus, n_workers=8, window=500_000, save_every=1000)
        hours: dict[str, float] = {}
        for n_chars, n_steps in ((128, 90_000), (512, 10_000)):
            flops = describe(SIZES["base"], n_chars=n_chars)["training_flops"] * n_chars * FILL
            make = here["make"] * (n_chars / 128) ** 0.1  # measured: an instance of 512 takes little longer
            speeds = {"compute": flops / (share * reached), "network": network, "overlap": assumed["overlap"]}
            for name, value in asdict(simulate(job, Rates(make=make, **speeds, **common))).items():
                hours[name] = hours.get(name, 0.0) + value / job.n_steps * n_steps / 3600
        total, passes = sum(hours.values()), hours.pop("compute")
        row = {"GPUs": n_gpus, "share of peak": share * gpu["share_of_peak"], "hours": total}
        row["hours an epoch"] = total * CORPUS / (8192 * FILL * (90_000 * 128 + 10_000 * 512))
        row |= {"dollars": total * n_gpus * assumed["dollars"], "passes": passes / total}
        row |= {name: value / total for name, value in hours.items()}
        rows.append(row | {"saturates first": max(hours, key=lambda name: hours[name])})
    return rows


def annotation(dollars: float) -> list[dict[str, Any]]:
    """Core hours and dollars to annotate 1 TB at the measured rates of the runtime in batches of 32."""
    rows = []
    for row in json.loads(RUNTIME.read_text(encoding="utf-8"))["chars_per_second"]:
        if row["batch_size"] == 32:
            rate = row["native_processor"]
            hours = 1e12 / BYTES / rate / 3600
            found = {"texts like": row["texts"], "characters a second of a core": rate, "core hours": hours}
            found |= {"hours on 64 cores": hours / 64, "dollars": hours * dollars}
            rows.append(found | {"MB read a second of 64 cores": 64 * rate * BYTES / 1e6})
    return rows
