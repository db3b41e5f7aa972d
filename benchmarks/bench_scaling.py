"""How long pre-training takes on many GPUs, simulated from measured rates, once that has predicted a measured run.

    python benchmarks/bench_scaling.py --json docs/bench/scaling.json

First the parts of a step are measured one by one on this machine (making instances, passes, updates, planning,
checkpoints), and the simulator predicts from them the processor seconds of steps of `pretrain` with the same recipe,
which are then measured. The prediction should be within 15%. The tables for GPUs take the rates of GPUs from
docs/bench/gpu/pretrain_bf16.json and what --help names as assumed. docs/scaling.md explains them.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import environment, options, report, use_threads, write
from scaling_model import Job, Rates, simulate

from cige.engine.checkpoint_writer import CheckpointWriter
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

BENCH = Path(__file__).parents[1] / "docs/bench"
GPU, RUNTIME = BENCH / "gpu/pretrain_bf16.json", BENCH / "runtime.json"
MOST = 0.15  # by which a prediction may differ from the measurement
N_DOCUMENTS = 2000
CORPUS, FILL = 18.3e9, 0.93  # characters of the paper's corpus; share of an instance's length that is filled
BYTES = 3  # of a Chinese character in UTF-8
NODE = 8  # GPUs of a machine
GPU_COUNTS = (8, 64, 256)


def main() -> None:
    parser = options(__doc__, n_rounds=1, n_threads=1)
    parser.add_argument("--steps", type=int, default=24, help="of the run that is predicted (default: %(default)s)")
    parser.add_argument("--nvlink", type=float, default=200e9, help="bytes/s of a GPU within a machine, assumed")
    parser.add_argument("--fabric", type=float, default=25e9, help="bytes/s of a GPU between machines, assumed")
    parser.add_argument("--disk", type=float, default=1e9, help="bytes/s of a process to shared storage, assumed")
    parser.add_argument("--overlap", type=float, default=0.5, help="share of the exchange that passes hide, assumed")
    parser.add_argument("--dollars", type=float, default=2.5, help="of a GPU for an hour, assumed")
    parser.add_argument("--core-dollars", type=float, default=0.04, help="of a core for an hour, assumed")
    args = parser.parse_args()
    use_threads(args.threads)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        data = made_up_data(Path(folder))
        here = measured_here(data, Path(folder), n_steps=args.steps)
    error = here["predicted"] / here["measured"] - 1
    met = "met" if abs(error) <= MOST else "missed"
    print(f"{args.steps} steps: predicted {here['predicted']:.1f} s, measured {here['measured']:.1f} s of one core;")
    print(f"expected: within {MOST:.0%}: {error:+.1%}, {met}")
    assumed = {name: getattr(args, name) for name in ("nvlink", "fabric", "disk", "overlap", "dollars", "core_dollars")}
    rows = plans(here["rates"], assumed)
    report("base size, the paper's 100,000 steps of 8,192 instances", rows)
    annotated = annotation(assumed)
    report("1 TB of Chinese text annotated by the bundled model on processor cores", annotated)
    facts = environment(threads=args.threads, n_rounds=args.rounds)
    write({"here": here, "assumed": assumed, "rows": rows, "annotation": annotated, "environment": facts}, args.json)


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
        output = folder / f"run-{n}"
        return spent(lambda: pretrain(recipe_of(n), data.folder, output, device="cpu", show_progress=False))

    seconds(1)  # what the first run of a process loads and builds
    few, before = seconds(2), rates_of(recipe, data, folder)
    measured, after = seconds(n_steps + 2) - few, rates_of(recipe, data, folder)
    # The machine's speed changes from minute to minute, so the rates are taken before and after.
    rates = Rates(**{name: (value + after.__dict__[name]) / 2 for name, value in before.__dict__.items()})
    job = Job(n_steps, recipe.short.batch_size, save_every=8)
    return {
        "job": job.__dict__,
        "rates": rates.__dict__,
        "predicted": simulate(job, rates).total,
        "measured": measured,
    }


def rates_of(recipe: PretrainRecipe, data: PretrainingData, folder: Path) -> Rates:
    """Processor seconds of each part of a step, of one core."""
    torch.manual_seed(0)
    model = LatticeBertForPreTraining(replace(recipe.model, n_tokens=len(data.vocabulary)))
    optimizer = make_optimizer(model, recipe.optimizer)
    start = time.process_time()
    objective = PretrainingObjective(recipe.short, recipe, data, seed=1)
    batches = objective.plan.batches(0)
    n_instances = sum(map(len, batches))
    plan = (time.process_time() - start) / n_instances
    n = recipe.short.batch_size
    taken: dict[str, list[float]] = {"make": [], "compute": [], "update": []}
    made: list[Any] = []

    def make(numbers: list[int]) -> None:
        made[:] = [objective.read(0, numbers)]

    def compute() -> None:
        losses, _ = objective.losses(model, made[0])
        (losses / torch.tensor(objective.weights(made[0])).clamp(min=1)).sum().backward()

    def update() -> None:
        clip_gradients(model.parameters(), recipe.optimizer)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for numbers in batches[:10]:
        taken["make"].append(spent(partial(make, numbers)))
        taken["compute"].append(spent(compute))
        taken["update"].append(spent(update))
    mean = {name: sum(found[2:]) / len(found[2:]) for name, found in taken.items()}
    writer = CheckpointWriter(folder / "written", origin="", n_kept=1, in_background=False)
    values = {"weights": dict(model.named_parameters()), "optimizer": optimizer.state_dict()}
    state = 12.0 * sum(p.numel() for p in model.parameters())
    writing = spent(lambda: writer.write(RunState(step=1), values))
    rates = Rates(
        make=mean["make"] / n,
        compute=mean["compute"] / n,
        update=mean["update"],
        plan=plan,
        state=state,
        copy=state / writing,  # in the foreground, where the processor writes it as well
    )
    return rates


def spent(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def plans(here: dict[str, Any], assumed: dict[str, float]) -> list[dict[str, Any]]:
    """Hours and dollars of base size on GPUs.

    The share of a GPU's peak that passes reach was measured at lite size; base size, with wider products, should reach
    more. So each row is computed with that share, and with one four times as large.
    """
    gpu = json.loads(GPU.read_text(encoding="utf-8"))
    lite = describe(SIZES["lite"], n_chars=128)["training_flops"]
    reached = lite * gpu["rows"][0]["characters a second"]  # operations per second
    n_parameters = describe(SIZES["base"], n_chars=128)["n_parameters"]
    update = gpu["rows"][0]["ms an update"] / 1e3 * n_parameters / describe(SIZES["lite"])["n_parameters"]
    rows = []
    for n_gpus in GPU_COUNTS:
        for share in (1, 4):
            hours, waits = 0.0, {}
            for n_chars, n_steps in ((128, 90_000), (512, 10_000)):
                flops = describe(SIZES["base"], n_chars=n_chars)["training_flops"] * n_chars * FILL
                rates = Rates(
                    make=here["make"] * (n_chars / 128) ** 0.1,  # measured: an instance of 512 takes little longer
                    compute=flops / (share * reached),
                    update=update,
                    plan=here["plan"],
                    gradient=4.0 * n_parameters,
                    state=12.0 * n_parameters,
                    network=assumed["nvlink"] if n_gpus <= NODE else assumed["fabric"],
                    overlap=assumed["overlap"],
                    copy=10e9,
                    disk=assumed["disk"],
                )
                job = Job(2000, 8192, n_processes=n_gpus, n_workers=8, window=500_000, save_every=1000)
                found = simulate(job, rates)
                hours += found.total / job.n_steps * n_steps / 3600
                for name, value in found.__dict__.items():
                    waits[name] = waits.get(name, 0.0) + value / job.n_steps * n_steps / 3600
            rest = {name: value for name, value in waits.items() if name != "compute"}
            rows.append(
                {
                    "GPUs": n_gpus,
                    "share of peak": share * gpu["share_of_peak"],
                    "hours": hours,
                    "hours an epoch": hours * CORPUS / (8192 * FILL * (90_000 * 128 + 10_000 * 512)),
                    "dollars": hours * n_gpus * assumed["dollars"],
                    "passes": waits["compute"] / hours,
                    **{name: value / hours for name, value in rest.items()},
                    "saturates first": max(rest, key=lambda name: rest[name]),
                }
            )
    return rows


def annotation(assumed: dict[str, float]) -> list[dict[str, Any]]:
    """Core hours and dollars to annotate 1 TB at the measured rates of the runtime in batches of 32."""
    found = json.loads(RUNTIME.read_text(encoding="utf-8"))["chars_per_second"]
    rates = {row["texts"]: row["native_processor"] for row in found if row["batch_size"] == 32}
    rows = []
    for texts, rate in rates.items():
        hours = 1e12 / BYTES / rate / 3600
        rows.append(
            {
                "texts like": texts,
                "characters a second of a core": rate,
                "core hours": hours,
                "hours on 64 cores": hours / 64,
                "dollars": hours * assumed["core_dollars"],
                "MB read a second of 64 cores": 64 * rate * BYTES / 1e6,
            }
        )
    return rows


if __name__ == "__main__":
    main()
