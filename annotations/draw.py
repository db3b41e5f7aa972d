"""Draw lines of the raw corpora to be annotated: a share for each kind of text, from sources that permit any use.

    python annotations/draw.py CORPUS_FOLDER TODAY_FOLDER OUTPUT_FOLDER --n 12800
    python annotations/draw.py CORPUS_FOLDER TODAY_FOLDER OUTPUT_FOLDER --n 5600 --seed 4 --kinds medicine games works

Which lines are drawn depends on their source and on words of the domain, never on what a tagger finds in them. Lines
that the set "today" has, or that were annotated before (`today/*.tsv`), are left out. The output is one file per reader
and hundred lines, `READER-BATCH.txt`, with `number<TAB>text`, and `places.tsv`, which says where each line stands.
"""

from __future__ import annotations

import argparse
import lzma
import random
import re
from collections.abc import Iterator
from pathlib import Path

from names import ANSWERS, checksum, read_rows

N_BATCH = 100
LENGTHS = range(6, 111)

POSTS = ("smp2020_weibo", "weibo_hot_titles", "hottitles", "weibo_desc")
QUESTIONS = ("zhihu_hot_hub", "zhihu_hot_questions", "zhihu")
CHAT = ("kdconv_dialogues", "crosswoz", "dgk_subtitles", "subs", "smile_dialogues", "vcsum")
PROSE = ("cctv_news", "cctv", "universe", "howtocook", "gaokao", "csl_abstracts", "cmrc_train", "drcd_devtest")
PROSE += ("kdconv_kb_travel", "book_review", "medical_sample", "nre", "lecard")
ALL = POSTS + QUESTIONS + CHAT + PROSE
DRAWS = {  # (share, sources, what a line must contain)
    "medicine": (
        12,
        ALL,
        r"药|胶囊|片剂|颗粒|注射液|疫苗|激素|素片|口服液|服用|胰岛素|西林|沙星|洛尔|替尼|单抗|中成药|维生素",
    ),
    "games": (
        12,
        POSTS + QUESTIONS + ("universe",),
        r"游戏|玩家|手游|电竞|战队|Steam|任天堂|主机|网游|开服|皮肤|角色|DLC|LOL|魔兽|副本|卡牌|桌游|剧本杀",
    ),
    "commerce": (
        11,
        POSTS + QUESTIONS + ("nre", "universe"),
        r"淘宝|天猫|京东|拼多多|直播间|带货|旗舰店|代言|品牌|联名|口红|护肤|面膜|奶茶|咖啡|超市|零食|运动鞋|奢侈品|包包|手表|美妆|"
        r"外卖|网购|下单|门店|家电|白酒|啤酒|饮料",
    ),
    "technology": (
        13,
        POSTS + QUESTIONS + ("universe", "cctv", "nre"),
        r"手机|芯片|App|APP|AI|大模型|机器人|软件|操作系统|电动车|新能源|汽车|车型|自动驾驶|火箭|卫星|飞船|飞机|航母|"
        r"平板|电脑|显卡|小程序|比特币|浏览器|开源|处理器|GPT",
    ),
    "works": (12, ALL, r"《|电影|电视剧|综艺|导演|专辑|歌曲|新歌|小说|动画|动漫|票房|开播|主演|番剧|纪录片|热播|演唱"),
    "latin": (9, ALL, r"[A-Za-z]{3}"),
    "finance": (5, POSTS + QUESTIONS + ("nre", "cctv"), r"股份|上市|基金|银行|证券|收购|融资|财报|市值|集团|投资"),
    "lists": (3, ALL, r"(、[^、，。]{1,12}){3}|[|｜/]\S+[|｜/]"),
    "posts": (7, POSTS, r""),
    "chat": (6, CHAT, r""),
    "prose": (5, PROSE, r""),
    "any": (5, ALL, r""),
    "names": (  # not in the first draw (seed 1, 13,000 lines)
        40,
        tuple(source for source in ALL if source not in ("cctv", "cctv_news")),
        r"省|县|大学|学院|医院|公司|集团|委员会|总统|主席|部长|记者|教授|导演|歌手|演员|选手|球员|球队|联赛|法院|公安|警方|先生|女士|"
        r"老师|景区|公园|机场|车站|酒店|美国|日本|俄罗斯|韩国|欧洲|英国|法国|印度",
    ),
}


def lines_of(corpus: Path) -> Iterator[tuple[str, str, int, str]]:
    """(source, part, line number, text) of every line of the sources that are drawn from."""
    for index in sorted(corpus.glob("*.index.tsv")):
        part = index.name.removesuffix(".index.tsv")
        rows = [row.split("\t") for row in index.read_text(encoding="utf-8").splitlines()[1:]]
        ranges = [(row[0], int(row[3]), int(row[4])) for row in rows if row[0] in ALL]
        source_of = {number: name for name, first, last in ranges for number in range(first, last + 1)}
        with lzma.open(corpus / f"{part}.txt.xz", "rt", encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                text = line.rstrip("\n")
                if number in source_of and len(text) in LENGTHS and not set(text) & set("\t\r"):
                    yield source_of[number], part, number, text


def known_texts(today: Path) -> set[str]:
    """The sentences of the set "today", which writes blanks as U+2423."""
    texts = set()
    for path in sorted(today.glob("*.bmes*")):
        open_ = lzma.open if path.suffix == ".xz" else open
        with open_(path, "rt", encoding="utf-8") as file:
            for block in file.read().split("\n\n"):
                texts.add("".join(line[0] for line in block.split("\n") if line))
    return texts


def draw(corpus: Path, today: Path, kinds: list[str], n_lines: int, seed: int) -> list[tuple[str, str, int, str]]:
    """(kind, part, line number, text) of the lines drawn, in random order; sources weigh by the root of their size."""
    rng = random.Random(seed)
    known = known_texts(today)
    done = {(row.part, row.line) for path in ANSWERS.glob("*.tsv") for row in read_rows(path)}
    draws = {kind: DRAWS[kind] for kind in kinds}
    pools: dict[str, dict[str, list[tuple[str, int, str]]]] = {kind: {} for kind in draws}
    for source, part, number, text in lines_of(corpus):
        if text.replace(" ", "␣") in known or (part, number) in done:
            continue
        for kind, (_, sources, pattern) in draws.items():
            if source in sources and re.search(pattern, text):
                pools[kind].setdefault(source, []).append((part, number, text))
    total = sum(share for share, _, _ in draws.values())
    taken: set[str] = set()
    drawn = []
    for kind, (share, _, _) in draws.items():
        by_source = pools[kind]
        names = sorted(by_source)
        weights = [len(by_source[name]) ** 0.5 for name in names]
        wanted = round(n_lines * share / total)
        there = {text for lines in by_source.values() for _, _, text in lines} - taken
        if len(there) < wanted:
            raise SystemExit(
                f"{kind}: {wanted:,} lines were asked for, and there are {len(there):,}; give a smaller --n"
            )
        while wanted:
            part, number, text = rng.choice(by_source[rng.choices(names, weights)[0]])
            if text not in taken:
                taken.add(text)
                drawn.append((kind, part, number, text))
                wanted -= 1
    rng.shuffle(drawn)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of the raw corpora")
    parser.add_argument("today", type=Path, help='folder of the set "today"')
    parser.add_argument("output", type=Path, help="folder for the batches")
    parser.add_argument("--n", type=int, default=12_800, help="number of lines (default: %(default)s)")
    parser.add_argument("--readers", type=int, default=8, help="number of readers (default: %(default)s)")
    parser.add_argument("--kinds", nargs="+", choices=DRAWS, default=list(DRAWS), help="kinds of lines (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    drawn = draw(args.corpus, args.today, args.kinds, args.n, args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    places = []
    for first in range(0, len(drawn), N_BATCH):
        batch = first // N_BATCH
        name = f"{batch % args.readers + 1}-{batch // args.readers + 1:02}"
        rows = drawn[first : first + N_BATCH]
        (args.output / f"{name}.txt").write_text(
            "".join(f"{number}\t{text}\n" for number, (_, _, _, text) in enumerate(rows, start=1)), encoding="utf-8"
        )
        places += [
            f"{name}\t{number}\t{kind}\t{part}\t{line}\t{checksum(text)}\n"
            for number, (kind, part, line, text) in enumerate(rows, start=1)
        ]
    (args.output / "places.tsv").write_text("".join(places), encoding="utf-8")
    print(f"{args.output}: {len(drawn):,} lines in {len(places) // N_BATCH} batches for {args.readers} readers")


if __name__ == "__main__":
    main()
