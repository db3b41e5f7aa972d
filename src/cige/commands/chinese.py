"""Chinese help of the command line, for a Chinese locale: one table of translations of verbs and common options."""

from __future__ import annotations

import argparse
import os

from cige.extensions import extensions

INTRODUCTION = "词格：融合字与词信息，从中文文本里找出实体。"
SEE = "每个命令的选项见 `cige VERB --help`。"
HEADINGS = {"usage: ": "用法：", "positional arguments": "参数", "options": "选项"}

_TRANSLATIONS = {
    # the verbs
    "find the entities of a text, a file or standard input": "找出一段文本、一个文件或标准输入里的实体",
    "serve a model over HTTP, with a page to try it in a browser": "启动 HTTP 服务，自带可在浏览器里试用的网页",
    "find the entities of whole files with several processes; an interrupted run can be resumed": (
        "用多个进程标注整批文件；中断之后可以继续"
    ),
    "show the lattice, the words that each entity depends on, and what changes without a word": (
        "显示词格、每个实体所依据的词，以及去掉某个词后结果如何变化"
    ),
    "train a model on your own labelled data, or with a recipe": "用您自己的标注数据训练模型，或按配方训练",
    "learn a new type of entity from a word list and raw text": "从词表和未标注文本学习新的实体类型",
    "score a model on labelled sentences": "在标注句子上评测模型",
    "label raw text with the entities that several models agree on, as training data": (
        "用几个模型一致认定的实体标注未标注文本，作为训练数据"
    ),
    "choose the sentences to label next, with the model's labels to correct": (
        "挑选接下来要标注的句子，并附上模型的标签，供人修改"
    ),
    "calibrate a model's scores on labelled sentences": "在标注句子上校准模型的分数",
    "measure how much user words improve F1 on labelled sentences": "测量用户词（自定义词典）能提高多少 F1",
    "train and score several systems in the same way, with tests of significance": (
        "用同样的方式训练并评测几个系统，并做显著性检验"
    ),
    "train and score every system on every data set, and make the pages of the results": (
        "在每个数据集上训练并评测每个系统，生成排行榜页面"
    ),
    "list, show and copy the built-in recipes": "列出、查看、复制自带的配方",
    "search hyper-parameters": "搜索超参数",
    "convert labelled documents between the formats of annotation tools": "在各种标注工具的文件格式之间转换",
    "build, look up and describe word lists": "建立、查询、描述词典",
    "show, build and extend the list of names that a model reads": "查看、建立、扩充模型所读的名称表",
    "train and convert vectors": "训练和转换向量",
    "download, describe and convert labelled data": "下载、描述、转换标注数据",
    "write the mean of the weights of several trained models": "写出几个训练好的模型的平均权重",
    "write a smaller model folder for prediction": "写出更小的、供预测用的模型文件夹",
    "write a model for ONNX Runtime, which needs no PyTorch": "导出给 ONNX Runtime 的模型，不需要 PyTorch",
    "describe a model and this installation": "描述模型和当前的安装",
    "check this installation, including a prediction of the bundled model": "检查安装是否正常，包括用自带模型预测一次",
    "print the shell code that completes cige commands": "打印用于补全 cige 命令的 shell 代码",
    # options of most verbs
    "show this help message and exit": "显示这份帮助并退出",
    "print the version": "打印版本",
    "model folder, hub id or `research` (default: the bundled model)": (
        "模型文件夹、hub 上的名字或 `research`（默认：自带的模型）"
    ),
    "model folder, hub id or `research` (default: the bundled model); may be given several times": (
        "模型文件夹、hub 上的名字或 `research`（默认：自带的模型）；可以给出多次"
    ),
    "cpu, cuda, cuda:1 ... (default: cpu)": "cpu、cuda、cuda:1 等（默认：cpu）",
    "auto, cpu or cuda (default: auto)": "auto、cpu 或 cuda（默认：auto）",
    "number format in which cige's own runtime computes a FLAT: auto uses the fastest one that the processor supports, "
    "float32 gives the same scores on every machine (default: auto)": (
        "cige 自己的运行时计算 FLAT 所用的数字格式：auto 用处理器支持的最快格式，"
        "float32 在每台机器上得到同样的分数（默认：auto）"
    ),
    "kind of text whose score calibration is used, such as posts": "使用哪一类文本的分数校准，例如 posts",
    "additional words: one per line, word<TAB>label, or CSV or JSON lines with word, label and mode (evidence, type, "
    "force, block, block_exact); or a folder of `cige lexicon publish`, whose current version is read; may be given "
    "several times": (
        "附加的用户词：每行一个词，或 词<TAB>标签，或含 word、label、mode（evidence、type、force、block、block_exact）"
        "的 CSV 或 JSON lines；也可以是 `cige lexicon publish` 写的文件夹，读取其中的当前版本；可以给出多次"
    ),
    "list of names with kinds instead of the model's own (see `cige names`)": (
        "注明种类的名称表，代替模型自带的（见 `cige names`）"
    ),
    "list of names instead of the model's own (see `cige names`)": "名称表，代替模型自带的（见 `cige names`）",
    "leave out entities with a lower score, 0..1": "不报告分数低于此值的实体，0 到 1",
    "report only these labels": "只报告这些标签",
    "coarse: report the topmost ancestor of each label, such as ORG for COMPANY (default: fine)": (
        "coarse：报告每个标签最上层的大类，例如 COMPANY 报告为 ORG（默认：fine）"
    ),
    "report as many candidates, which may overlap, as are needed to find this share of the entities; requires a model "
    "that was calibrated by `cige calibrate`": (
        "报告足够多的候选（可以重叠），以便找到这个比例的实体；模型需要先用 `cige calibrate` 校准"
    ),
    "coarse: the data has topmost ancestors of the model's labels, such as ORG for COMPANY (default: fine)": (
        "coarse：数据用的是模型标签最上层的大类，例如用 ORG 代替 COMPANY（默认：fine）"
    ),
    "repair invalid tag transitions and keep the outermost of overlapping entities, instead of rejecting the file": (
        "修正不合法的标签转移，实体重叠时保留最外层的，而不是拒绝整个文件"
    ),
    "data label = model label, where they differ, separated by spaces or commas; several labels may be mapped to one, "
    "and PER.NOM= leaves a label out": (
        "数据标签 = 模型标签（名字不同时），以空格或逗号分隔；几个标签可以对应同一个，PER.NOM= 表示去掉这个标签"
    ),
    "labelled sentences, in any format cige reads": "标注句子，cige 能读的任何格式",
    "training sentences: score entities in them and other entities separately": (
        "训练句子：其中出现过的实体和其他实体分别计分"
    ),
    "folder of the run": "这次训练的文件夹",
    "change settings of the recipe": "修改配方里的设置",
    "start from the beginning, even if the output folder has checkpoints": "从头开始，即使输出文件夹里有检查点（断点）",
    "name, such as weibo/flat, or YAML file": "配方的名字，例如 weibo/flat，或 YAML 文件",
    "data sets and vectors ($CIGE_DATA, then the cache)": "数据集和向量所在的文件夹（$CIGE_DATA，其次是缓存）",
    "sentences per batch (16)": "每批句子数（16）",
    "print JSON instead of a table": "打印 JSON，而不是表格",
    "print JSON instead of tables": "打印 JSON，而不是表格",
    "output format (default: table)": "输出格式（默认：table）",
    "(default: 1)": "（默认：1）",
    "folder to write": "要写入的文件夹",
    # cige names
    "a list of names, or a model (default: the bundled model)": "名称表，或者模型（默认：自带的模型）",
    "print JSON": "打印 JSON",
    "lists to add: name<TAB>kind, such as 阿莫西林<TAB>MEDICINE": (
        "要加入的名称表：名称<TAB>种类，例如 阿莫西林<TAB>MEDICINE"
    ),
    "collected names: name<TAB>type<TAB>source": "收集来的名称：名称<TAB>类型<TAB>来源",
    "type, source, kind, minimum count, keep|drop (common words)": (
        "类型、来源、种类、最少次数、keep|drop（普通词是否保留）"
    ),
    "raw text in which names are counted": "统计名称次数所用的未标注文本",
    "list to write": "要写入的名称表",
    "version of the list, stated in the file": "名称表的版本，写在文件里",
    "date of the list, stated in the file": "名称表的日期，写在文件里",
}
TRANSLATIONS = _TRANSLATIONS | {text: chinese for added in extensions() for text, chinese in added.chinese.items()}
"""The English text of a verb or of an option's help, and what is shown instead; those of extensions come last."""
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


def is_wanted() -> bool:
    """Whether the locale of messages is Chinese: the first of the variables that is set decides."""
    locale = next((value for name in _VARIABLES if (value := os.environ.get(name))), "")
    return locale.lower().startswith("zh")


def chinese(text: str) -> str:
    """The translation of a text, or the text itself."""
    return TRANSLATIONS.get(text, text)


class ChineseHelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats help with Chinese headings."""

    def add_usage(self, usage, actions, groups, prefix=None):  # type: ignore[no-untyped-def]
        super().add_usage(usage, actions, groups, HEADINGS["usage: "] if prefix is None else prefix)


def translate(parser: argparse.ArgumentParser) -> None:
    """Show the help of a parser, and of those below it, in Chinese where there is a translation."""
    parser.formatter_class = ChineseHelpFormatter
    for group in parser._action_groups:
        group.title = HEADINGS.get(group.title or "", group.title)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                translate(below)
        elif action.help:
            action.help = chinese(action.help)
