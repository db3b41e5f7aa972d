"""Devices by name: clear errors for what is not there."""

import pytest
import torch

from cige import load
from cige.cli import main
from cige.errors import ModelError
from cige.nn.device import prediction_device


def test_the_cpu():
    assert prediction_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["tpu", "gpu:x", "", "cuda:x", 5.5])
def test_what_is_no_device(name):
    with pytest.raises(ModelError, match=r"expected cpu, cuda or cuda:N"):
        prediction_device(name)


def test_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="device cuda:7: PyTorch finds no GPU on this machine; use cpu"):
        prediction_device("cuda:7")


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert prediction_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ModelError, match="device cuda:2: this machine has GPUs 0 to 1"):
        prediction_device("cuda:2")


def test_models_and_commands_report_it(capsys):
    with pytest.raises(ModelError, match="expected cpu, cuda or cuda:N"):
        load(device="tpu")
    assert main(["predict", "北京", "--device", "tpu"]) == 2
    assert "device 'tpu': expected cpu, cuda" in capsys.readouterr().err
