"""Builds the optional CPU kernel; everything else is in pyproject.toml.

`optional=True`: where there is no C compiler the installation goes on without it and cige.nn.native falls back to
PyTorch operations with the same results.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "cige.nn.native._kernels",
            sources=["src/cige/nn/native/kernels.c"],
            extra_compile_args=["-O3", "-ffast-math", "-std=gnu11", "-pthread"],
            extra_link_args=["-pthread"],
            py_limited_api=True,
            define_macros=[("Py_LIMITED_API", "0x030A0000")],
            optional=True,
        )
    ]
)
