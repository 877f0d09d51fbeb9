# SPDX-License-Identifier: MIT
"""Every benchmark prints its head comment when asked for help."""

import sys


def show(text):
    if {'-h', '--help'} & set(sys.argv[1:]):
        print(text.strip())
        sys.exit(0)
