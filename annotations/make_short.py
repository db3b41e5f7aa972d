"""Make short texts as people type them: a name alone, a question about it, common words, digits, places repeated,
persons before a verb, places in Latin letters.

    python annotations/make_short.py annotations/gazetteer/curated.tsv gazetteer.tsv.xz made.bmes

Sentences of corpora hardly have such texts. The names are those of the curated list that have one type;
`gazetteer.tsv.xz` has rows of name, type and source, of which the administrative places are read. Common words are
those of jieba's dictionary.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path

import jieba

from cige.data import Sentence, Span, write_sentences
from cige.lexicon.names_build import read_rows

QUESTIONS = {
    "PER": ["{}是谁", "{}简介", "{}最新消息", "{}多大了", "请问{}现在在哪", "{}和他的朋友"],
    "LOC": ["{}天气", "{}旅游攻略", "{}怎么去", "去{}要多少钱", "飞{}的机票"],
    "SCENE": ["{}门票", "{}怎么去", "{}好玩吗", "{}几点关门", "附近有{}吗"],
    "ORG": ["{}官网", "{}分数线", "{}怎么样", "{}最新消息", "{}地址"],
    "GOVERNMENT": ["{}回应", "{}官网", "{}发布通知", "{}电话多少"],
    "COMPANY": ["{}股票", "{}招聘", "{}怎么样", "{}总部在哪", "{}发布新品", "{}裁员"],
    "BRAND": ["{}是什么牌子", "{}旗舰店", "{}鞋子", "{}面膜好用吗", "{}多少钱一瓶"],
    "PRODUCT": ["{}下载", "{}怎么用", "{}好用吗", "{}值得买吗", "{}多少钱", "我用{}写的", "{}登录不上去"],
    "MEDICINE": ["{}怎么吃", "{}的副作用", "{}说明书", "孕妇能吃{}吗", "医生开了{}", "{}多少钱一盒"],
    "GAME": ["{}攻略", "{}好玩吗", "{}更新公告", "在玩{}", "{}下载"],
    "BOOK": ["{}读后感", "{}作者是谁", "在看{}", "{}好看吗"],
    "VIDEO": ["{}什么时候上映", "{}演员表", "{}大结局", "{}好看吗", "在追{}"],
    "SONG": ["{}歌词", "{}是谁唱的", "单曲循环{}", "{}原唱"],
}
DIGITS = ["{}", "电话{}", "手机号{}", "尾号{}", "订单号：{}", "QQ{}", "房间{}", "编号{}的那个", "联系方式{}谢谢"]
PLACES = ("admin-divisions", "cldr")
SAYS = [
    *("{}说", "{}说，这次不一样", "{}表示感谢", "{}认为不是这样", "{}称已经报警", "{}指出了问题", "{}空砍32分"),
    *("{}飞抵现场", "记者{}报道", "{}回应了", "{}人在外地", "据{}介绍", "{}曾发文", "{}将出席", "{}率队夺冠"),
    *("{}也来了", "主持人{}问道", "{}为此道歉", "对{}来说很难"),
]
SURNAMES = "王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜"
SURNAMES += "范江傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
TRIPS = ["飞{}的航班", "去{}要签证吗", "{}天气", "我在{}", "从{}出发", "人在{}，刚下飞机", "住在{}附近"]
LATIN_PLACES = [
    *("San Francisco", "New York", "Los Angeles", "London", "Paris", "Tokyo", "Singapore", "Hong Kong", "Las Vegas"),
    *("Boston", "Chicago", "Seattle", "Sydney", "Melbourne", "Toronto", "Vancouver", "Berlin", "Munich", "Milan"),
    *("Barcelona", "Madrid", "Rome", "Vienna", "Zurich", "Geneva", "Amsterdam", "Kyoto", "Osaka", "Seoul", "Bangkok"),
    *("Kuala Lumpur", "Silicon Valley", "Palo Alto", "Santa Clara", "San Diego", "San Jose", "New Zealand"),
    "Abu Dhabi",
]


def filled(frame: str, name: str, label: str) -> Sentence:
    start = frame.index("{}")
    return Sentence(frame.format(name), (Span(start, start + len(name), label),))


def names_alone(names: dict[str, list[str]], rng: random.Random, n_alone: int, n_asked: int) -> list[Sentence]:
    """Names alone and in questions, as many of each type as its share of the square roots."""
    labels = sorted(names)
    weights = [len(names[label]) ** 0.5 for label in labels]
    sentences = []
    for number in range(n_alone + n_asked):
        label = rng.choices(labels, weights)[0]
        frame = "{}" if number < n_alone else rng.choice(QUESTIONS[label])
        sentences.append(filled(frame, rng.choice(names[label]), label))
    return sentences


def common_words(listed: set[str], rng: random.Random, n_words: int) -> list[Sentence]:
    """Frequent words that are no names, alone, and digits."""
    words = []
    with jieba.get_module_res("dict.txt") as file:
        for line in file.read().decode("utf-8").splitlines():
            word, count, tag = line.split(" ")
            if len(word) > 1 and int(count) > 300 and tag in ("n", "v", "vn", "a", "i", "l") and word not in listed:
                words.append(word)
    return [Sentence(word, ()) for word in rng.sample(words, n_words)]


def digits(rng: random.Random, n_texts: int) -> list[Sentence]:
    numbers = ("".join(rng.choices("0123456789", k=rng.choice((3, 4, 6, 7, 8, 8, 11, 11, 12)))) for _ in range(n_texts))
    return [Sentence(rng.choice(DIGITS).format(number), ()) for number in numbers]


def repeated(places: list[str], rng: random.Random, n_texts: int) -> list[Sentence]:
    """One to three places, again and again without marks between them; half of them a place and one within it."""
    wide = [place for place in places if place[-1] in "省市"]
    narrow = [place for place in places if place[-1] in "市区县"]
    sentences = []
    for _ in range(n_texts):
        chosen = rng.sample(places, rng.choice((1, 2, 2, 2, 3)))
        if rng.random() < 0.5:
            chosen = [rng.choice(wide), rng.choice(narrow)]
        text, spans = "", []
        for place in chosen * rng.choice((1, 1, rng.randint(1, 36 // len(chosen)))):
            spans.append(Span(len(text), len(text) + len(place), "LOC"))
            text += place
        sentences.append(Sentence(text, tuple(spans)))
    return sentences


def persons(names: list[str], rng: random.Random, n_texts: int) -> list[Sentence]:
    """Persons before a verb: half of them from the list, half a surname with one or two characters of given names."""
    given = [c for name in names if 2 <= len(name) <= 3 and name[0] in SURNAMES for c in name[1:]]
    texts = []
    for _ in range(n_texts):
        made = rng.choice(SURNAMES) + "".join(rng.choices(given, k=rng.choice((1, 2, 2, 2))))
        texts.append(filled(rng.choice(SAYS), rng.choice((made, rng.choice(names))), "PER"))
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curated", type=Path)
    parser.add_argument("gazetteer", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    types: dict[str, set[str]] = defaultdict(set)
    for name, type_, _ in read_rows(args.curated):
        types[name].add(type_)
    names: dict[str, list[str]] = defaultdict(list)
    for name, of_name in sorted(types.items()):
        if len(of_name) == 1:
            names[min(of_name)].append(name)
    rows = read_rows(args.gazetteer)
    places = sorted({name for name, type_, source in rows if source in PLACES and len(name) > 2 and type_ == "LOC"})
    sentences = names_alone(names, rng, 2500, 1500) + common_words(set(types), rng, 1200)
    sentences += digits(rng, 300) + repeated(places, rng, 1200)
    sentences += persons(names["PER"], rng, 1200)
    sentences += [filled(rng.choice(TRIPS), rng.choice(LATIN_PLACES), "LOC") for _ in range(120)]
    rng.shuffle(sentences)
    write_sentences(args.output, sentences)
    print(f"{args.output}: {len(sentences):,} texts")


if __name__ == "__main__":
    main()
