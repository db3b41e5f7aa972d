"""Names in the marks 《》 of raw text, as rows of a gazetteer: name, WORK, quoted.

    python annotations/gazetteer/quoted.py raw.txt > quoted.tsv

Laws, contracts, documents, reports and newspapers also stand in these marks; what ends like one of them is left out.
"""

import re
import sys
from collections import Counter

DOCUMENT = re.compile(
    r"(法|条例|规定|规则|细则|办法|标准|章程|规范|通知|通告|公告|意见|决定|决议|协定|协议|公约|条约|宣言|声明|规划|方案|计划|纲要|报告|"
    r"合同|解释|批复|指南|指引|目录|报|日报|晚报|周刊|时报|白皮书|蓝皮书|备忘录|守则|公报|建议|书|证|表|清单|说明|要点|制度|大纲|草案)$"
)


def main(path: str) -> None:
    counts: Counter[str] = Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if "《" in line:
                counts.update({name.strip() for name in re.findall(r"《([^《》]{2,20})》", line)})
    for name, count in sorted(counts.items()):
        if count >= 2 and not DOCUMENT.search(name) and "中华人民共和国" not in name:
            print(name, "WORK", "quoted", sep="\t")


if __name__ == "__main__":
    main(sys.argv[1])
