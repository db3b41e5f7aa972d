"""Chinese help of the command line, for a Chinese locale: one table of translations of verbs and common options."""

from __future__ import annotations

import argparse
import os
import re

from cige.extensions import extensions

INTRODUCTION = "词格：融合字与词信息，从中文文本里找出实体。"
SEE = "每个命令的选项见 `cige 命令 --help`。"
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
    "with a model of nested entities: leave out entities that overlap one with a higher score": (
        "用于嵌套实体的模型：与分数更高的实体重叠的，不报告"
    ),
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
    "print everything as JSON instead of tables": "把全部内容打印为 JSON，而不是表格",
    "output format (default: table)": "输出格式（默认：table）",
    "(default: 1)": "（默认：1）",
    "folder to write": "要写入的文件夹",
    # texts and their files
    "texts to process, one per line; the path of an existing file (a .json file contains documents), - or nothing "
    "for standard input, or the text itself": (
        "要处理的文本，每行一段：已有文件的路径（.json 文件里是文档）；- 或不写表示标准输入；其他的就是文本本身"
    ),
    "the text to explain; the path of an existing file (a .json file contains documents), - or nothing for standard "
    "input, or the text itself": (
        "要解释的文本：已有文件的路径（.json 文件里是文档）；- 或不写表示标准输入；其他的就是文本本身"
    ),
    # cige predict, evaluate and explain
    "add the lattice words that each entity attended to most": "列出词格里每个实体最注意的词",
    "treat all lines as one document; if a name was found at one place and missed at another, predict again with "
    "the found names as words (of nested entities, only the outermost are found)": (
        "把所有行当作一篇文档：如果某个名字在一处找到、在另一处漏掉，就把找到的名字当作词，"
        "再识别一遍（嵌套的实体只找最外层的）"
    ),
    "texts per batch; with 1, each result is printed before the next text is read (default: 16)": (
        "每批文本数；为 1 时，先打印一段的结果，再读下一段（默认：16）"
    ),
    "leave out entities with labels that the data does not have, which otherwise count as errors": (
        "不计数据中没有的标签的实体，否则它们算作错误"
    ),
    "write every error with its text, one JSON object per line": "写出每个错误和所在的文本，每行一个 JSON 对象",
    "write an HTML page, or drawings if FILE is a .svg or .png": (
        "写出 HTML 网页；如果 FILE 是 .svg 或 .png，则写出图"
    ),
    "list the N most attended words (default: 5)": "列出注意力最大的 N 个词（默认：5）",
    "do not predict again without each word": "不逐个去掉词重新预测",
    "list the B, M, E and S words of each character (default: if the model uses such sets)": (
        "列出每个字的 B、M、E、S 四个词集合（默认：模型使用这种集合时列出）"
    ),
    "draw the model's attention as heat maps": "把模型的注意力画成热图",
    # cige train, suggest, calibrate and user-words
    "labelled sentences to train on (a file or folder), instead of those of the recipe": (
        "用来训练的标注句子（文件或文件夹），代替配方里的数据"
    ),
    "labelled sentences for choosing the epoch (default: last tenth)": "用来挑选轮次的标注句子（默认：最后十分之一）",
    "data label = label to train, for labels of --data that have another name in the model to start from, separated "
    "by spaces or commas; NAME= leaves a label out": (
        "数据标签 = 训练用的标签，用于 --data 中与起点模型名字不同的标签，以空格或逗号分隔；NAME= 表示去掉这个标签"
    ),
    "unlabelled sentences, one per line; - is standard input": "未标注的句子，每行一句；- 表示标准输入",
    "file of tasks to write, which must not exist": "要写出的任务文件，不能已经存在",
    "sentences to suggest (default: 200)": "挑选的句数（默认：200）",
    "see above (default: both)": "见上文（默认：both）",
    "format of OUTPUT; jsonl has text and entities (default: doccano)": (
        "OUTPUT 的格式；jsonl 含 text 和 entities（默认：doccano）"
    ),
    "sentences that are already labelled, in any format of `cige convert`; may be given several times": (
        "已经标注过的句子，`cige convert` 的任何格式；可以给出多次"
    ),
    "unit of annotation cost; with `character`, long sentences have no advantage (default: sentence)": (
        "标注代价的单位；用 `character` 时，长句子不占便宜（默认：sentence）"
    ),
    "skip shorter and longer sentences (default: 5 200)": "跳过更短和更长的句子（默认：5 200）",
    "write the sentences without the model's labels": "只写句子，不写模型的标签",
    "seed for samples and ties (default: 1)": "随机抽样和同分时所用的种子（默认：1）",
    "model folder, whose manifest is changed": "模型文件夹，其中的清单会被修改",
    "store the calibration for one kind of text, selected by `cige.load(domain=NAME)` and `--domain NAME`": (
        "保存为某一类文本的校准，用 `cige.load(domain=NAME)` 和 `--domain NAME` 选用"
    ),
    "word lists to try separately, with labels and modes if they have them": "分别测试的词表，可以带标签和方式",
    "seed of the random n-grams (default: 0)": "随机字串的种子（默认：0）",
    "draw the table as a bar chart, in a .svg, .png or .pdf file": "把表画成柱状图，写到 .svg、.png 或 .pdf 文件",
    # cige annotate and convert
    "file, or folder of files of one format": "文件，或同一格式的文件所在的文件夹",
    "folder to write to": "要写入的文件夹",
    "format of INPUT (default: by file name)": "INPUT 的格式（默认：由文件名决定）",
    "format to write (default: that of INPUT; jsonl for txt)": "输出的格式（默认：与 INPUT 相同；txt 则为 jsonl）",
    "column or key with the text (text)": "文本所在的列或键（text）",
    "column or key to add (entities)": "要添加的列或键（entities）",
    "leave out the columns source_file and source_row, the file and the line (or record) that a row is from": (
        "不写 source_file 和 source_row 两列，即每行来自哪个文件、哪一行（或哪条记录）"
    ),
    "unit of the offsets; use utf-16 for Java and JavaScript (default: code-points)": (
        "位置的单位；供 Java 和 JavaScript 使用时选 utf-16（默认：code-points）"
    ),
    "reject longer texts (default: no limit)": "拒绝更长的文本（默认：不限）",
    "rows per part (default: by size of INPUT)": "每个部分的行数（默认：由 INPUT 的大小决定）",
    "when a job is run again: compare the checksums of finished parts, and annotate those again that differ": (
        "重新执行任务时，比对已完成部分的校验和，不符的重新标注"
    ),
    "number of processes, actors or tasks (default: one per core)": "进程、actor 或任务的个数（默认：每个核一个）",
    "where processes run (default: local)": "进程在哪里运行（默认：local）",
    "share of a GPU per actor of --engine ray": "用 --engine ray 时，每个 actor 占一块 GPU 的多大比例",
    "file, folder of files in one format, or brat folder": "文件、同一格式的文件所在的文件夹，或 brat 文件夹",
    "file to write, or folder for brat": "要写出的文件；brat 则是文件夹",
    "format of INPUT (default: detected)": "INPUT 的格式（默认：自动判断）",
    "format of OUTPUT (default: by its suffix)": "OUTPUT 的格式（默认：由扩展名决定）",
    "column with the text, in CSV, TSV and Parquet (text)": "CSV、TSV 和 Parquet 中文本所在的列（text）",
    "column with the entities (entities)": "实体所在的列（entities）",
    "names of numeric tags, in order": "数字标签的名称，按顺序",
    # cige serve
    "model folder, hub id, `bundled` or `research`, or NAME=FOLDER to name it; may be given several times: requests "
    "select a model by name, and the first is the default (default: the bundled model)": (
        "模型文件夹、hub 上的名字、`bundled` 或 `research`，或用 NAME=FOLDER 命名；可以给出多次："
        "请求按名称选择模型，不选时用第一个（默认：自带的模型）"
    ),
    "address to listen on (default: 127.0.0.1, local only)": "监听的地址（默认：127.0.0.1，只限本机）",
    "(default: 8000)": "（默认：8000）",
    "processes (default: 1)": "进程数（默认：1）",
    "file in which words of clients are stored; created if missing": "保存客户端所加的词的文件；没有时会新建",
    "a web origin whose pages may call this server, such as https://example.org; may be given several times": (
        "允许哪个来源的网页调用本服务器，例如 https://example.org；可以给出多次"
    ),
    "a name by which requests may call the server in their Host header, such as ner.example.org; a server on a "
    "local address knows its own names, and others accept any name unless this is given; may be given several times": (
        "请求的 Host 头可以用来称呼本服务器的名称，例如 ner.example.org；在本机地址上的服务器只认自己的名称，"
        "在其他地址上的则接受任何名称，除非给出这个选项；可以给出多次"
    ),
    "listen on an address that other machines reach without a token": "在其他机器能访问的地址上监听，而不要求令牌",
    "log each request, without its text": "记录每个请求，不含文本",
    "log the texts of requests": "记录请求的文本",
    "maximum size of a request body, decompressed too (default: 4,194,304)": (
        "请求体的大小上限，解压后也算（默认：4,194,304）"
    ),
    "maximum number of texts per request (default: 512)": "一次请求最多有几段文本（默认：512）",
    "maximum number of characters per request (default: 100,000)": "一次请求最多有多少个字符（默认：100,000）",
    "maximum number of characters per explained request (default: 4,000)": (
        "带解释的请求最多有多少个字符（默认：4,000）"
    ),
    "maximum number of waiting characters; further requests get status 429 (default: 8,192)": (
        "最多有多少个字符等待；超出的请求得到 429（默认：8,192）"
    ),
    "maximum number of characters and words per batch (default: 4,096)": "一批最多有多少个字和词（默认：4,096）",
    "maximum number of connections per worker; beyond it, those that wait longest are closed (default: 1,024)": (
        "每个进程最多有多少个连接；超出时关闭等待最久的（默认：1,024）"
    ),
    "maximum expected waiting time of a short request in seconds; if it is longer, the status is 429 (default: 0.15)": (
        "短请求预计最多等待的秒数；更久就返回 429（默认：0.15）"
    ),
    "seconds after which a request gets status 504 (default: 30)": "请求超过多少秒得到 504（默认：30）",
    "seconds within which the body of a request must have arrived; otherwise, the status is 408 (default: 30)": (
        "请求体必须在多少秒内送到，否则返回 408（默认：30）"
    ),
    "seconds for finishing requests when the server is stopped (default: 30)": (
        "停止服务器时，留给未完成请求的秒数（默认：30）"
    ),
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
_UNBROKEN = re.compile(
    r" +|[（《“]*(?:[^ \u2018-\u201d\u3000-\u9fff\uff00-\uffef]+|.)[，。、；：？！）》”]*", re.DOTALL
)
"""A word in Latin letters, or a Chinese character with the marks that may not be parted from it."""


def is_wanted() -> bool:
    """Whether the locale of messages is Chinese: the first of the variables that is set decides."""
    locale = next((value for name in _VARIABLES if (value := os.environ.get(name))), "")
    return locale.lower().startswith("zh")


def chinese(text: str) -> str:
    """The translation of a text, or the text itself."""
    return TRANSLATIONS.get(text, text)


def lines_of(text: str, n_columns: int) -> list[str]:
    """The lines of a text on a terminal, where a Chinese character takes two columns and may be followed by a break."""
    from rich.cells import cell_len

    lines = [""]
    for part in _UNBROKEN.findall(" ".join(text.split())):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > n_columns:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return [line.rstrip() for line in lines]


class ChineseHelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats help with Chinese headings, and breaks its lines as Chinese text is broken."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return lines_of(text, width)

    def format_help(self) -> str:
        return re.sub(rf"^({'|'.join(HEADINGS.values())}):$", r"\1：", super().format_help(), flags=re.MULTILINE)

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
