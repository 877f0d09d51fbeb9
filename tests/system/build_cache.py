# SPDX-License-Identifier: MIT
"""A compiler cache for builds that compile the same sources with the same options in different folders: build/ of tools/run-tests and
build-kit of `make release`. Each object is compiled once, by the first of them."""

import shutil


def variables(compiler):
    """For the environment of meson and ninja; without ccache only the compiler."""
    if not shutil.which('ccache'):
        return {'CC': compiler}
    # The folder is only in the debug information, which the kit does not keep.
    return {'CC': f'ccache {compiler}', 'CCACHE_NOHASHDIR': '1'}
