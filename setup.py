"""Builds the optional C parts: the CPU kernels, matching words, reading vectors; all else is in pyproject.toml.

`optional=True`: where there is no C compiler the installation goes on without them, and cige.nn.native falls back to
PyTorch operations, cige.lexicon.walk and cige.lexicon.parse to Python, with the same results.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "cige.nn.native._kernels",
            sources=[f"src/cige/nn/native/{name}.c" for name in ("kernels", "softmax", "vocabulary")],
            depends=[f"src/cige/nn/native/{name}.h" for name in ("bf16", "threads")],
            extra_compile_args=["-O3", "-march=native", "-ffast-math", "-std=gnu11", "-pthread"],
            extra_link_args=["-pthread", "-lm"],
            py_limited_api=True,
            define_macros=[("Py_LIMITED_API", "0x030A0000")],
            optional=True,
        ),
        *(
            Extension(
                f"cige.lexicon._{name}",
                sources=[f"src/cige/lexicon/{name}.c"],
                extra_compile_args=["-O3"],
                py_limited_api=True,
                define_macros=[("Py_LIMITED_API", "0x030A0000")],
                optional=True,
            )
            for name in ("walk", "parse")
        ),
    ]
)
