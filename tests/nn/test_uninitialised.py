"""Networks that wait for weights: nothing is drawn, nothing is held, and everything else works as it does elsewhere."""

import pytest
import torch
from torch import nn

from cige.nn.uninitialised import uninitialised


class Network(nn.Module):
    """What layers do when they are made, by functions of nn.init and by methods of tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4, padding_idx=0)
        self.dense = nn.Linear(4, 6)
        self.recurrent = nn.LSTM(4, 3)
        self.own = nn.Parameter(torch.empty(3, 5))
        nn.init.xavier_uniform_(self.own)
        nn.init.normal_(tensor=self.own, std=0.1)
        nn.init.zeros_(self.dense.bias)
        self.other = nn.Parameter(torch.empty(6).normal_().uniform_(-1, 1))


def test_weights_of_a_file_are_all_there_is():
    source = Network()
    before = torch.get_rng_state()
    with uninitialised():
        made = Network()
    assert torch.equal(torch.get_rng_state(), before)
    assert {p.device.type for p in made.parameters()} == {"meta"}
    assert [(n, p.shape) for n, p in made.named_parameters()] == [(n, p.shape) for n, p in source.named_parameters()]
    made.load_state_dict(source.state_dict(), assign=True)
    assert {p.device.type for p in made.parameters()} == {"cpu"}
    assert torch.equal(made.dense(made.table.weight), source.dense(source.table.weight))


def test_it_ends_with_the_context_whatever_happens():
    with pytest.raises(KeyError), uninitialised():
        raise KeyError
    torch.manual_seed(1)
    drawn = nn.init.normal_(torch.empty(50))
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.empty(50).normal_()) and drawn.device.type == "cpu" and drawn.std() > 0.5
