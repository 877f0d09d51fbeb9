# SPDX-License-Identifier: MIT
"""The guides of docs/ can be typed as they stand."""

import shutil

import pytest

import harness
import readme


@pytest.fixture
def clone(ana):
    place = readme.clone(ana)
    yield place
    shutil.rmtree(place)


@pytest.mark.root
@pytest.mark.parametrize('page', ['admin', 'migrating', 'api'])
def test_a_guide_can_be_typed_as_it_stands(ana, clone, page):
    root = harness.User('root')
    names = (*readme.names_of(ana), (clone, '/home/ada/mgpu'))
    with readme.own_machine(ana, clone, root) as terminal:
        typed = readme.sections(f'docs/{page}.md')
        for heading in typed:
            readme.type_section(terminal, heading, f'docs/{page}.md', ana, root, names)
    assert sum(map(len, typed.values())) > 3
