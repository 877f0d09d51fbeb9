# SPDX-License-Identifier: MIT
"""Mail about jobs through the machine's own mail system, into the mailbox of the job's owner."""

import mailbox
import os

import pytest

import harness

SENDMAIL = '/usr/sbin/sendmail'
pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.xdist_group('/var/mail'),
              pytest.mark.skipif(not os.path.exists(SENDMAIL), reason='no mail system here: tools/install-packages real')]


@pytest.fixture
def letters(ana):
    """What has come into the mailbox of ana in this test; her own letters are kept."""
    path = f'/var/mail/{ana.name}'
    kept = f'{path}.kept-{os.getpid()}'
    if os.path.exists(path):
        os.rename(path, kept)

    def read():
        if not os.path.exists(path):
            return []
        return list(mailbox.mbox(path, create=False))

    yield read
    if os.path.exists(path):
        os.unlink(path)
    if os.path.exists(kept):
        os.rename(kept, path)


def test_the_owner_gets_a_mail_of_the_end_of_a_job(make_instance, ana, letters):
    box = make_instance('sim:1x8G')
    feature, = [row for row in box.api('GET', '/nodes').json['nodes'][0]['features'] if row['name'] == 'mail']
    assert feature['on'], feature
    job = box.submit('-g', '0', '-J', 'train', '--notify', 'mail', '--', 'sh', '-c', 'echo last words; exit 4')
    box.wait(job)
    found = harness.until(letters, 'the mail')
    assert len(found) == 1, found
    assert 'train' in found[0]['Subject'] and ana.name in found[0]['To'], found[0].as_string()
    assert 'last words' in found[0].get_payload() and ana.name in found[0]['From'], found[0].as_string()
    notice, = box.job(job)['notices']
    assert notice['state'] == 'sent', notice
