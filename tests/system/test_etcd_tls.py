# SPDX-License-Identifier: MIT
"""etcd that requires client certificates, and what mgpud says about the wrong ones."""

import datetime
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

import harness
from controllers import Controller, Controllers, Etcd, has_etcd

pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not has_etcd() or not shutil.which('openssl'),
                                 reason='etcd-server or openssl is not installed')]

EXTENSIONS = 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n'


class Authority:
    """A certificate authority in a folder that every user can read: the keys are worth nothing."""

    def __init__(self, place, name):
        self.place, self.name = place, name
        self.certificate, self.key = f'{place}/{name}.crt', f'{place}/{name}.key'
        self.openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-subj', f'/CN={name}', '-keyout', self.key, '-out',
                     self.certificate)
        os.chmod(self.key, 0o644)

    @staticmethod
    def openssl(*arguments):
        return subprocess.run(['openssl', *arguments], check=True, capture_output=True, text=True).stdout

    def issue(self, name, days=30, names=EXTENSIONS):
        """(certificate, key). With days < 0, one that has ended."""
        key, request, certificate, extensions = (f'{self.place}/{name}.{end}' for end in ('key', 'csr', 'crt', 'ext'))
        with open(extensions, 'w', encoding='ascii') as file:
            file.write(names)
        self.openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', f'/CN={name}', '-keyout', key, '-out', request)
        if days > 0:
            self.openssl('x509', '-req', '-in', request, '-CA', self.certificate, '-CAkey', self.key, '-CAcreateserial', '-days', str(days),
                         '-extfile', extensions, '-out', certificate)
        else:
            self.issue_past(request, extensions, certificate)
        os.chmod(key, 0o644)
        return certificate, key

    def issue_past(self, request, extensions, certificate):
        database, config = f'{self.place}/{self.name}.index', f'{self.place}/{self.name}.cnf'
        for path, text in ((database, ''), (f'{self.place}/{self.name}.serial', '7001\n')):
            with open(path, 'w', encoding='ascii') as file:
                file.write(text)
        with open(config, 'w', encoding='ascii') as file:
            file.write(f'[ca]\ndefault_ca=own\n[own]\ndatabase={database}\nserial={self.place}/{self.name}.serial\n'
                       f'new_certs_dir={self.place}\ndefault_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n')
        now = datetime.datetime.now(datetime.timezone.utc)
        past = [(now - datetime.timedelta(days=days)).strftime('%Y%m%d%H%M%SZ') for days in (30, 1)]
        self.openssl('ca', '-batch', '-config', config, '-cert', self.certificate, '-keyfile', self.key, '-in', request, '-out', certificate,
                     '-startdate', past[0], '-enddate', past[1], '-extfile', extensions, '-notext')

    def revoke(self, certificate):
        """A list of revoked certificates that has this one."""
        crl, config = f'{self.place}/crl.pem', f'{self.place}/crl.cnf'
        with open(f'{self.place}/crl.index', 'w', encoding='ascii'):
            pass
        with open(config, 'w', encoding='ascii') as file:
            file.write(f'[ca]\ndefault_ca=own\n[own]\ndatabase={self.place}/crl.index\ndefault_md=sha256\ndefault_crl_days=7\n')
        common = ('-config', config, '-cert', self.certificate, '-keyfile', self.key)
        self.openssl('ca', *common, '-revoke', certificate)
        self.openssl('ca', *common, '-gencrl', '-out', crl)
        der = f'{self.place}/crl.der'
        self.openssl('crl', '-in', crl, '-outform', 'DER', '-out', der)
        return der


@pytest.fixture(scope='module')
def place():
    made = tempfile.mkdtemp(prefix='mgpu-tls-', dir='/tmp')
    os.chmod(made, 0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope='module')
def authority(place):
    return Authority(place, 'authority')


@pytest.fixture(scope='module')
def good(authority):
    return authority.issue('controller')


@pytest.fixture(scope='module')
def revoked(authority):
    return authority.issue('revoked')


@pytest.fixture(scope='module')
def etcd(authority, revoked):
    certificate, key = authority.issue('server')
    made = Etcd(3, tls=(authority.certificate, certificate, key, authority.revoke(revoked[0])))
    yield made
    made.close()


def options(authority, pair):
    return ('--cluster-ca', authority.certificate, '--cluster-cert', pair[0], '--cluster-key', pair[1])


def trouble_of(ana, etcd, arguments, *extra):
    """What `mgpud --migrate` says, and then goes on saying."""
    member = Controller('cx', etcd, ana, arguments)
    try:
        done = subprocess.run([*member.command, '--migrate', *extra], capture_output=True, text=True, check=False,
                              timeout=harness.DEADLINE_S, cwd='/')
        assert done.returncode != 0, done
        return done.stderr
    finally:
        shutil.rmtree(member.place, ignore_errors=True)


def test_controllers_use_client_certificates_and_survive_a_dead_endpoint(ana, authority, good, etcd):
    etcd.processes[0].send_signal(signal.SIGSTOP)
    etcd.shown = [1, *etcd.clients]  # nobody listens on the first, the second does not answer
    try:
        with Controllers(ana, count=2, etcd=etcd, arguments=options(authority, good), is_own=False) as controllers:
            leader = controllers.leader()
            jobs = [leader.post_job(['true'], hold=True) for _ in range(5)]
            assert len(set(jobs)) == 5
            leader.kill()
            new = controllers.leader()
            assert [new.api('GET', f'/jobs/{job}').json['state'] for job in jobs] == ['queued'] * 5
            leader.start()
    finally:
        etcd.shown = None
        etcd.processes[0].send_signal(signal.SIGCONT)


def test_each_wrong_certificate_has_its_own_sentence(ana, place, authority, good, revoked, etcd):
    foreign = Authority(place, 'foreign')
    assert 'requires a client certificate' in trouble_of(ana, etcd, ('--cluster-ca', authority.certificate))
    said = trouble_of(ana, etcd, options(authority, authority.issue('expired', days=-1)))
    assert 'this certificate expired on' in said and 'expired.crt' in said, said
    said = trouble_of(ana, etcd, options(authority, foreign.issue('stranger')))
    assert 'the authority of --cluster-ca did not issue this certificate' in said, said
    said = trouble_of(ana, etcd, options(authority, revoked))
    assert 'it is revoked, or issued by an authority that etcd does not trust' in said, said
    said = trouble_of(ana, etcd, options(foreign, good))
    assert 'the certificate of this server was not issued by the authority in' in said, said
    said = trouble_of(ana, etcd, options(authority, (good[0], revoked[1])))
    assert 'is not the key of' in said, said
    said = trouble_of(ana, etcd, options(authority, (f'{place}/none.crt', good[1])))
    assert 'cannot read' in said and 'none.crt' in said, said
    said = trouble_of(ana, etcd, ('--cluster-ca', authority.certificate, '--cluster-cert', good[0]))
    assert '--cluster-cert and --cluster-key belong together' in said, said


def test_servers_of_etcd_with_wrong_certificates_have_their_own_sentences(ana, authority, good):
    for pair, sentence in ((authority.issue('old-server', days=-1), 'the certificate of this server has expired'),
                           (authority.issue('other-server', names='subjectAltName=DNS:elsewhere\nextendedKeyUsage=serverAuth,clientAuth\n'),
                            'the certificate of this server is for another name')):
        bad = Etcd(1, tls=(authority.certificate, *pair, None), is_checked=False)
        try:
            assert sentence in trouble_of(ana, bad, options(authority, good))
        finally:
            bad.close()


def test_an_etcd_without_tls_is_said_to_have_none(ana, authority, good):
    plain = Etcd(1)
    try:
        plain.scheme = 'etcds'
        said = trouble_of(ana, plain, options(authority, good))
        # It answers in plain text, or resets the connection: which of the two comes first is chance.
        assert 'does not use TLS' in said and 'etcd:// instead of etcds://' in said, said
    finally:
        plain.close()
