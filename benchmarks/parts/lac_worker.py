"""LAC 2.1.2 behind a pipe: JSON [texts, batch size] a line in, [[[words, tags], ...], processor seconds] out.

It runs in a virtual environment of its own, on Python 3.11:

  python3.11 -m venv lac && lac/bin/pip install "setuptools<81" wheel
  lac/bin/pip install "paddlepaddle==2.6.2" "numpy<2"
  lac/bin/pip install --no-deps --no-build-isolation "lac==2.1.2"
"""

import json
import os
import sys
import time


def model():
    """LAC's model of words, parts of speech and names."""
    import paddle
    import paddle.base

    sys.modules["paddle.fluid"] = paddle.fluid = paddle.base  # the name by which LAC 2.1.2 knows it
    sys.modules["paddle.fluid.core"] = paddle.base.core
    from LAC import LAC

    return LAC(mode="lac")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Paddle prints is no answer
    lac = model()
    for line in sys.stdin:
        texts, batch_size = json.loads(line)
        found = []
        for first in range(0, len(texts), batch_size):
            found += lac.run(texts[first : first + batch_size])
        answers.write(json.dumps([found, time.process_time()]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
