"""What importing Lattice-BERT loads."""

import subprocess
import sys


def test_training_needs_no_transformers():
    code = "import cige.lattice_bert.tasks.finetune, cige.lattice_bert.pretraining.pretrain, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "cige.engine.trainer" in loaded and "transformers" not in loaded
