"""The pages of a leaderboard, in English and Chinese: Markdown, and one HTML file whose tables sort."""

from __future__ import annotations

import html
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from cige.drawing.figures import markdown_table
from cige.leaderboard.table import BoardRow
from cige.reports.comparison import SPEED_BATCHES
from cige.reports.comparison_views import mean_sd, shown_p
from cige.reports.significance import Difference

DATA_NAMES = {"weibo": "Weibo", "resume": "Resume", "ecommerce": "E-commerce", "cluener": "CLUENER", "msra": "MSRA"}
Board = Mapping[str, Sequence[BoardRow]]


@dataclass(frozen=True)
class Wording:
    """The texts of a page in one language; `heads` are those of the columns of `_cells`."""

    title: str
    introduction: str
    data: str
    without_test: str
    heads: tuple[str, ...]
    note: str
    best: str
    differs: str
    open_cells: str
    explanation: str
    none_open: str
    paper_of: Callable[[BoardRow], str]


ENGLISH = Wording(
    title="Leaderboard",
    introduction=(
        "Strict entity F1 in per cent, mean ± standard deviation over the seeds. All systems read the same words and "
        "vectors, and are trained, chosen on dev and scored by the same code; the test set is scored once. This page "
        "is made from the files of results alone."
    ),
    data="{data}: {n} sentences of the {split} set",
    without_test="dev",
    heads=(
        *("system", "seeds", "dev F1", "test F1", "new sentences", "paper", "behind the best by [95%]", "p"),
        *("gain over the twin without words [95%]", "gain from user words", "sentences/s, batch 1", "batch 16"),
        *("MB", "parameters", "minutes"),
    ),
    note=(
        "New sentences are those of the test set (or of dev, where there is no test set) that do not occur in the "
        "training set, and the column has the F1 on them. Differences have simultaneous 95% intervals, and p is "
        "corrected for all pairs of systems in the table (Holm); in a table in which no system has two seeds, they "
        "cover other sentences and not other seeds. How much seeds change a score is estimated from the systems with "
        "several, so with few of them the intervals are wide. The gain from user words is that of all names of the "
        "dev sentences as words, which is an upper bound. Sentences per second are those of processor time with one "
        "thread in float32, and MB the most resident memory of a process that loads the model and reads the set. "
        "Minutes are elapsed time, in which the machine may have had other work."
    ),
    best="best",
    differs="Why a score differs from its paper",
    open_cells="{n} of {total} cells are open; `cige leaderboard run` goes on with the cheapest: {shown}",
    explanation="`{name}` ({paper}): {differs}",
    none_open="All cells are filled.",
    paper_of=lambda row: row.paper.differs if row.paper else "",
)
CHINESE = Wording(
    title="排行榜",
    introduction=(
        "严格匹配的实体 F1（%），为各随机种子的均值 ± 标准差。所有系统读同样的词和向量，由同样的代码训练、"
        "在开发集上选择轮次并评分；测试集只评一次。本页完全由结果文件生成。"
    ),
    data="{data}：{split}集 {n} 句",
    without_test="开发",
    heads=(
        *("系统", "种子", "开发集 F1", "测试集 F1", "新句子", "论文", "落后最好的系统 [95%]", "p"),
        *("比不读词的同一网络高 [95%]", "用户词的增益", "句/秒，批大小 1", "批大小 16"),
        *("MB", "参数量", "分钟数"),
    ),
    note=(
        "新句子是测试集（没有时是开发集）中不同时出现在训练集里的句子，这一列是它们的 F1。"
        "差值附有同时成立的 95% 置信区间，p 值已针对表中系统的所有两两比较作了校正（Holm）；"
        "表中没有一个系统有两个种子时，它们只反映句子的差异，不反映种子的差异。种子对成绩的影响，由有多个种子的系统来估计；这样的系统少，区间就宽。"
        "用户词的增益是把开发集句子里的全部名称作为词得到的，是上限。句/秒按处理器时间计，单线程，float32；"
        "MB 是一个进程加载模型并读完该集时的最大常驻内存。分钟数是实际时间，机器可能同时有其他任务。"
    ),
    best="最好",
    differs="成绩为何与论文不同",
    open_cells="{total} 个单元中还有 {n} 个未完成；`cige leaderboard run` 从最省时的开始继续：{shown}",
    explanation="`{name}`（{paper}）：{differs}",
    none_open="所有单元都已完成。",
    paper_of=lambda row: row.paper.differs_zh if row.paper else "",
)


def markdown_page(board: Board, open_cells: Sequence[str], *, wording: Wording, links: str = "") -> str:
    """The page in Markdown.

    Args:
        board: the rows of each data set (`board_of`).
        open_cells: names of the cells without a result, cheapest first.
        links: a line below the title, such as a link to the page in the other language.
    """
    parts = [f"# {wording.title}", *filter(None, [links]), wording.introduction]
    for data, rows in board.items():
        parts += [
            f"## {_heading(rows, data, wording)}",
            markdown_table(wording.heads, [_cells(row, wording) for row in rows]),
        ]
    parts += [wording.note, f"## {wording.differs}", "\n".join(f"- {line}" for line in _explanations(board, wording))]
    parts.append(_open_line(board, open_cells, wording))
    return "\n\n".join(parts) + "\n"


def html_page(
    board: Board, open_cells: Sequence[str], *, wording: Wording, figures: dict[str, str] | None = None
) -> str:
    """The page as one HTML file without other files; a click on the head of a column sorts the table by it.

    Args:
        board, open_cells: as in `markdown_page`.
        figures: an SVG figure for each data set, if there is one.
    """
    body = [f"<h1>{html.escape(wording.title)}</h1>", f"<p>{html.escape(wording.introduction)}</p>"]
    for data, rows in board.items():
        body.append(f"<h2>{html.escape(_heading(rows, data, wording))}</h2>")
        body.append(_html_table(wording.heads, [_cells(row, wording) for row in rows]))
        body.append((figures or {}).get(data, ""))
    body += [f"<p>{html.escape(wording.note)}</p>", f"<h2>{html.escape(wording.differs)}</h2>", "<ul>"]
    body += [f"<li>{html.escape(line).replace('`', '')}</li>" for line in _explanations(board, wording)]
    body += ["</ul>", f"<p>{html.escape(_open_line(board, open_cells, wording)).replace('`', '')}</p>"]
    template = files("cige.leaderboard").joinpath("page.html").read_text(encoding="utf-8")
    language = "zh" if wording is CHINESE else "en"
    return (
        template.replace("{{language}}", language)
        .replace("{{title}}", f"cige: {html.escape(wording.title)}")
        .replace("{{body}}", "\n".join(filter(None, body)))
    )


def _heading(rows: Sequence[BoardRow], data: str, wording: Wording) -> str:
    first = rows[0].results[0]
    split = wording.without_test if first.test_f1 is None else ("测试" if wording is CHINESE else "test")
    return wording.data.format(data=DATA_NAMES.get(data, data), n=f"{len(first.counts):,}", split=split)


def _cells(row: BoardRow, wording: Wording) -> list[str]:
    """The cells of a row, in the order of `wording.heads`; "-" where nothing was measured."""
    results = row.results
    paper = row.paper.scores.get(results[0].data) if row.paper else None
    gain = row.word_gain
    return [
        row.name,
        ", ".join(str(result.seed) for result in results),
        mean_sd([result.dev_f1 for result in results]),
        mean_sd(row.test),
        mean_sd([result.new_f1 for result in results]),
        "-" if paper is None else f"{paper:.2f}",
        wording.best if row.behind is None else _interval(row.behind),
        "-" if row.behind is None else shown_p(row.behind.p_value),
        "-" if row.over_twin is None else _interval(row.over_twin),
        "-" if gain is None else f"{100 * gain:+.1f}",
        *(f"{row.speed[size]:.0f}" for size in SPEED_BATCHES),
        f"{statistics.mean(r.megabytes for r in results):.0f}",
        f"{results[0].n_parameters / 1e6:.1f}M",
        f"{statistics.mean(r.seconds for r in results) / 60:.1f}",
    ]


def _interval(difference: Difference) -> str:
    return f"{100 * difference.value:.2f} [{100 * difference.low:.2f}, {100 * difference.high:.2f}]"


def _explanations(board: Board, wording: Wording) -> list[str]:
    """A line per system that has a paper, in alphabetical order."""
    rows = {row.name: row for rows in board.values() for row in rows}
    return [
        wording.explanation.format(name=name, paper=row.paper.paper, differs=wording.paper_of(row))
        for name, row in sorted(rows.items())
        if row.paper
    ]


def _open_line(board: Board, open_cells: Sequence[str], wording: Wording) -> str:
    if not open_cells:
        return wording.none_open
    total = len(open_cells) + sum(len(row.results) for rows in board.values() for row in rows)
    shown = ", ".join(open_cells[:8]) + (" ..." if len(open_cells) > 8 else "")
    return wording.open_cells.format(n=len(open_cells), total=total, shown=shown)


def _html_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    rows = "\n".join(line("td", cells) for cells in body)
    table = f'<table class="sortable"><thead>{line("th", heads)}</thead><tbody>\n{rows}\n</tbody></table>'
    return f'<div class="wide">{table}</div>'
