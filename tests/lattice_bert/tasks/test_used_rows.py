import tiny_tasks as tiny
import torch

from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.used_rows import UsedRows

EXAMPLES = [TextExample("0", "研究生生活", None, "甲"), TextExample("1", "他在北京", "上海", "乙")]


def test_a_smaller_table_reads_the_same_and_gives_back_what_it_learnt():
    model = tiny.tuned("classification", EXAMPLES)
    bert, head = model.network.eval().bert, model.network.head
    items = model.items(EXAMPLES)
    before = bert.embeddings.tokens.weight.detach().clone()
    with torch.no_grad():
        expected = head.outputs(bert, items)
    used = UsedRows(bert, items)
    n_used = len({int(id) for item in items for one in item.inputs for id in one.ids})
    assert len(bert.embeddings.tokens.weight) == n_used < len(before)
    smaller = used.renumber(items)
    with torch.no_grad():
        found = head.outputs(bert, smaller)
    assert all((a == b).all() for a, b in zip(expected, found, strict=True))
    with torch.no_grad():
        bert.embeddings.tokens.weight += 1
    used.put_back()
    changed = (bert.embeddings.tokens.weight != before).any(1)
    assert changed.nonzero().squeeze(1).tolist() == used.rows.tolist()
    torch.testing.assert_close(bert.embeddings.tokens.weight[used.rows], before[used.rows] + 1)
