# SPDX-License-Identifier: MIT
"""Every benchmark prints its head comment when asked for help, and refuses programs that `make run` has built without optimization.
At its end it says what the processors did meanwhile."""

import os
import sys

import processors

BUILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'build')


def show(text):
    if {'-h', '--help'} & set(sys.argv[1:]):
        print(text.strip())
        sys.exit(0)
    build = os.environ.get('MGPU_BUILD', BUILD)
    if os.path.exists(os.path.join(build, 'quick')):  # a mark of the Makefile
        sys.exit(f'{build} is not optimized, so its figures would mean nothing: run make first')
    processors.tell_at_the_end()
