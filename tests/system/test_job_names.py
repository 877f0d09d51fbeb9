# SPDX-License-Identifier: MIT
"""A job by its name, when several jobs have it: every verb that takes a job shows the newest, or acts only where one is meant."""

import re

import pytest

from test_mcp import Assistant

GPUS = 'sim:4x8G'
NAME = 'train'

SHOWS = {'ps': (), 'show': (), 'why': (), 'postmortem': (), 'logs': (), 'retry': ()}
WAITS = {'wait': ()}
ACTS = {'attach': (), 'exec': ('--', 'true'), 'forward': ('0:1',), 'ssh-proxy': (), 'cancel': (), 'hold': (), 'release': (),
        'edit': ('time=3h',), 'signal': ('USR1',), 'suspend': (), 'continue': (), 'park': (), 'unpark': (), 'requeue': ()}
NO_NAMES = {'submit', 'top'}  # JOBS.yaml; and the screen, below


def verbs_with_jobs(box):
    """Those whose usage has a JOB."""
    text = box.mgpu('help', check=True).out
    verbs = re.findall(r'^  ([a-z][a-z-]+) +[A-Z]', text, re.M)
    return {verb for verb in verbs if re.search(r'usage: .*\bJOBS?\b', box.mgpu('help', verb, check=True).out)}


@pytest.fixture
def twins(box):
    """Two of a name: one runs, and one that was submitted later waits."""
    older = box.submit('-J', NAME, '--', 'sleep', '600')
    newer = box.submit('-J', NAME, '--hold', '--', 'true')
    box.wait(older, 'running')
    return older, newer


def test_every_verb_with_jobs_is_known_here(box):
    assert verbs_with_jobs(box) == {*SHOWS, *WAITS, *ACTS} | NO_NAMES


@pytest.mark.parametrize('verb', [*ACTS, *WAITS])
def test_a_verb_that_acts_refuses_a_name_of_several_jobs(box, twins, verb):
    older, newer = twins
    done = box.mgpu(verb, NAME, *{**ACTS, **WAITS}[verb])
    assert done.code != 0, done
    assert f"2 of your jobs are named '{NAME}': {older} (running), {newer} (queued)" in done.err, done
    assert 'hint: give the number' in done.err, done
    states = box.mgpu('ps', '-H', '-o', 'state', older, newer, check=True).out.split()
    assert states == ['running', 'held'], done


@pytest.mark.parametrize('verb', SHOWS)
def test_a_verb_that_shows_takes_the_newest_and_names_the_others(box, twins, verb):
    older, newer = twins
    done = box.mgpu(verb, NAME, *SHOWS[verb])
    assert f'job {newer} is your newest named {NAME}; others of that name have not ended: {older} (running)' in done.err, done
    assert NAME not in box.mgpu('-q', verb, NAME).err


def test_top_opens_the_page_of_the_newest(box, twins):
    _, newer = twins
    assert f'Job {newer}  {NAME}' in box.mgpu('top', '--once', '--size', '80x24', NAME, check=True).out
    unknown = box.mgpu('top', '--once', 'nosuch')
    assert unknown.code == 2 and "'nosuch' is neither a view nor a job of yours" in unknown.err and 'timeline' in unknown.err, unknown


def test_the_only_one_that_has_not_ended_is_meant(box, twins):
    older, newer = twins
    box.mgpu('cancel', newer, check=True)
    box.wait(newer)
    waiting = box.mgpu('wait', NAME)
    assert f'{older} (running), {newer} (ended)' in waiting.err and waiting.code == 125, waiting
    assert f'{older} (running), {newer} (ended)' in box.mgpu('submit', '-A', NAME, '--', 'true').err
    box.mgpu('cancel', NAME, check=True)
    assert box.wait(older)['state'] == 'cancelled'
    assert box.mgpu('wait', NAME).code != 125, 'all have ended: the newest'
    ended = box.mgpu('cancel', NAME)
    assert f'job {newer} has already ended' in ended.err, ended


def test_the_elements_of_an_array_are_one_job(box):
    array = box.submit('-J', NAME, '-a', '0-3', '-g', '0.5', '--', 'sleep', '600')
    box.mgpu('cancel', NAME, check=True)
    assert box.wait(f'{array}.0')['state'] == 'cancelled'


def test_more_jobs_than_a_line_holds_are_counted(box):
    jobs = [box.submit('-J', NAME, '--hold', '--', 'true') for _ in range(11)]
    done = box.mgpu('cancel', NAME)
    assert f"11 of your jobs are named '{NAME}': 3 more, {jobs[3]} (queued), " in done.err, done


def test_other_users_jobs_of_the_name_do_not_count(box, ana, bo):
    own = box.submit('-J', NAME, '--', 'sleep', '600', user=ana)
    box.submit('-J', NAME, '--', 'sleep', '600', user=bo)
    box.mgpu('cancel', NAME, user=ana, check=True)
    assert box.wait(own)['state'] == 'cancelled'


def test_an_assistant_is_held_to_the_same_rule(box, twins):
    assistant = Assistant(box)
    for tool in ('cancel_job', 'wait_job'):
        text, is_error = assistant.call(tool, job=NAME)
        assert is_error and f"2 of your jobs are named '{NAME}'" in text, text
    assert assistant.get('show_job', job=NAME)['id'] == twins[1]
    assistant.close()
    assert box.job(twins[0])['state'] == 'running'
