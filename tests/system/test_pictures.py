# SPDX-License-Identifier: MIT
"""The pictures of the documents: `mgpu top` (docs/top.svg) and the page (docs/web.png), made anew and compared.

MGPU_PICTURES=SECONDS writes them, after the GPUs have had that time to fill their history. Compared is what does not depend on
the moment and on fonts: the words and figures in each line of the terminal with their colours, and the text of the page, which the PNG
carries.
"""

import html
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib

import pytest

import harness
import readme
from nvml import Nvml
from test_top import Top

ROOT = pathlib.Path(harness.ROOT)
TOP, PAGE = ROOT / 'docs' / 'top.svg', ROOT / 'docs' / 'web.png'
LIVE_S = os.environ.get('MGPU_PICTURES')
TEXT_KEY = b'Description'
pytestmark = [pytest.mark.root, pytest.mark.xdist_group('pictures')]

# Used memory (MiB), load (percent), temperature, milliwatts of each GPU once the jobs run.
GPUS = ((22340, 99, 67, 394000), (22340, 96, 64, 388000), (17020, 83, 60, 341000), (11980, 74, 61, 312000), (11980, 71, 58, 305000),
        (3060, 7, 36, 24000), (11360, 18, 40, 86000), (3, 0, 33, 18000))

TRAIN = '''import os, sys
for epoch in range(1, 35):
    print(f'epoch {epoch:3d}  loss {2.4 / (1 + epoch / 6):.4f}  lr {3e-4 * 0.97 ** epoch:.2e}', flush=True)
with open(os.environ['MGPU_NOTIFY'], 'w') as notify:
    print('PROGRESS=0.57', file=notify)
open(sys.argv[1]).read()
'''

NAMES = '''set -e
for file in passwd group; do
    sed -e 's/^mgpu-ta:/ada:/' -e 's/^mgpu-tb:/ben:/' /etc/$file >"$1/$file"
    mount --bind "$1/$file" /etc/$file
done
echo ready
exec sleep infinity
'''


class Scene:
    """A box on which ada and ben work. Its mgpud knows them by these names: its /etc/passwd has them."""

    def __init__(self, make_instance, ana, bo, place):
        self.ana, self.bo, self.place = ana, bo, place
        harness.require_namespaces()
        self.port = harness.free_port()
        self.gate = harness.Gate(place)
        self.holder = subprocess.Popen(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', NAMES, 'sh', place],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == 'ready\n'
        self.nvml = Nvml(place)
        for number in range(len(GPUS)):
            self.nvml.add(0x10 + number, f'GPU-{number:08x}-0000-4000-8000-000000000000', used_mib=3, celsius=33, milliwatts=18000,
                          model='NVIDIA GeForce RTX 4090')
        self.nvml.write()
        self.box = make_instance('auto', start=False, listen=f'127.0.0.1:{self.port}', client=ana,
                                 arguments=(*self.nvml.arguments, '--node', 'gpubox'))
        self.box.command = ['nsenter', f'--target={self.holder.pid}', '--mount', *self.box.command]
        self.box.start()
        pathlib.Path(place, 'train.py').write_text(TRAIN, encoding='ascii')
        os.symlink(self.gate.path, f'{place}/corpus')
        self.stranger = subprocess.Popen(['/usr/bin/python3', '-c', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE)
        self.fill()

    def submit(self, user, name, *options, command=None):
        return self.box.submit('-q', '-J', name, *options, '--', *(command or ('python3', 'train.py', 'corpus')), user=user, cwd=self.place)

    def fill(self):
        self.box.wait(self.submit(self.bo, 'tokenize', '-g', '1', command=('true',)))
        self.box.wait(self.submit(self.ana, 'smoke-test', '-g', '1', command=('sh', '-c', 'echo "KeyError: lr"; exit 1')))
        running = []
        for user, name, *options in ((self.ana, 'llm-7b', '-g', '2', '-t', '12h'), (self.ana, 'eval', '-g', '1', '-t', '2h'),
                                     (self.bo, 'diffusion', '-g', '2', '-t', '1d'), (self.bo, 'notebook', '-g', '1', '--idle-ok')):
            running.append(self.submit(user, name, *options))
            self.box.wait(running[-1], 'running')  # top lists them in the order of their starts
        self.box.mgpu('gpu', 'pause', '7', '--reason', 'fan', user=self.box.user, check=True)
        self.set_load()
        self.nvml.say(f'process 6 compute {self.stranger.pid} 11357')
        self.nvml.write()
        harness.until(lambda: self.box.gpus()[0]['utilization'] == 0.99 and self.box.gpus()[6]['processes'], 'the load is seen')
        self.submit(self.ana, 'ablation', '-g', '4', '-t', '6h')
        self.submit(self.bo, 'big', '-g', '7', '-t', '1d')
        self.live(float(LIVE_S or 0))
        self.job = running[0]

    def set_load(self, moment=0):
        """The values above, or others that go up and down with the moment."""
        for number, (used, load, celsius, power) in enumerate(GPUS):
            load = max(0, load - (moment * (7 + 3 * number) % 29 if load > 50 else 0))
            self.nvml.gpus[number] = re.sub(r'(gpu \w+ \w+ \d+) \d+ \d+ \d+ \d+', rf'\1 {used} {load} {celsius} {power}', self.nvml.gpus[number])

    def live(self, seconds):
        """For the graphs of the past."""
        for moment in range(int(seconds), -1, -1):
            self.set_load(moment)
            self.nvml.write()
            time.sleep(1 if moment else 0)

    def close(self):
        self.gate.close()
        for process in (self.holder, self.stranger):
            process.kill()
            process.communicate()


@pytest.fixture
def scene(make_instance, ana, bo, place):
    os.chmod(place, 0o755)
    made = Scene(make_instance, ana, bo, place)
    yield made
    made.box.cancel_all()
    made.close()


def plain(line, scene):
    text = re.sub(r';[^;]*…', ';…', readme.plain(line, ()))  # how much of a sentence fits depends on the width of durations
    return re.sub(r'\b[A-Z][a-z]{2}, [A-Z][a-z]{2} \d+ TIME', 'TIME', text).replace(scene.place if scene else '\0', '/home/ada')


def lines_of(picture):
    """[(the words of a line, its colours)] of an SVG of tools/terminal-svg."""
    rows = {}
    for top, fill, text in re.findall(r'<text [^>]*y="(\d+)"[^>]* fill="(#\w+)"[^>]*>([^<]*)</text>', picture):
        if plain(text, None) == 'BAR':
            continue  # of load, or of the past, which may be short
        row = rows.setdefault(int(top), ([], set()))
        row[0].append(html.unescape(text))
        row[1].add(fill)
    return [(plain(' '.join(texts), None), sorted(colours)) for _, (texts, colours) in sorted(rows.items())]


@pytest.mark.skipif(not shutil.which('tmux') or not harness.HAS_TERMINALS, reason='no tmux or no pseudoterminals here')
def test_the_picture_of_top_is_what_top_shows(scene, place):
    os.chmod(place, 0o1777)
    screen = Top(scene.box, place, columns=100, rows=36).run()
    try:
        screen.wait(r'epoch  34')
        screen.wait(r'◌ +\d+ ben +big +queued')
        screen.wait(r'ben +notebook .* 57%')
        screen.wait(r'99%')
        screen.wait(r' 21\.8/24G ')  # may come a moment after the load
        # The status line belongs to tmux, colours and all; the screen above it is top's.
        made = subprocess.run([ROOT / 'tools' / 'terminal-svg', 'mgpu top: eight GPUs, the queue, and the output of a job'],
                              input=screen.text('-e').replace(scene.place, '/home/ada'), stdout=subprocess.PIPE, text=True, check=True).stdout
    finally:
        screen.close()
    if LIVE_S:
        TOP.write_text(made, encoding='utf-8')
    assert lines_of(TOP.read_text(encoding='utf-8')) == lines_of(made), 'MGPU_PICTURES=120 makes docs/top.svg anew'


def chunks_of(png):
    """[(kind, content)] of a PNG."""
    at, found = 8, []
    while at < len(png):
        length, kind = struct.unpack('>I4s', png[at:at + 8])
        found.append((kind, png[at + 8:at + 8 + length]))
        at += length + 12
    return found


def with_text(png, text):
    """The PNG with a text of ours in it."""
    chunks = chunks_of(png)
    chunks.insert(1, (b'zTXt', TEXT_KEY + b'\0\0' + zlib.compress(text.encode())))
    return png[:8] + b''.join(struct.pack('>I4s', len(content), kind) + content + struct.pack('>I', zlib.crc32(kind + content))
                              for kind, content in chunks)


def text_of(png):
    for kind, content in chunks_of(png):
        if kind == b'zTXt' and content.startswith(TEXT_KEY):
            return zlib.decompress(content[len(TEXT_KEY) + 2:]).decode()
    return None


@pytest.mark.real
def test_the_picture_of_the_page_is_what_the_page_shows(scene):
    browser = pytest.importorskip('test_web_browser')
    if not (browser.CHROMIUM and browser.DRIVER):
        pytest.skip('chromium is not installed: tools/install-packages real')
    place = f'{scene.place}/browser'
    os.mkdir(place)
    os.chown(place, scene.ana.uid, scene.ana.gid)
    chromium = browser.Chromium(scene.ana, place)
    try:
        chromium.resize(1200, 960)
        chromium.page.get(f'http://127.0.0.1:{scene.port}/#/now')
        chromium.until_text('live', 'header')
        harness.until(lambda: len(chromium.all('progress')) == 4, 'bars of progress')
        chromium.until_text('requested 7 GPUs', '[aria-label=Queue]')
        chromium.until_text('smoke-test', '[aria-label=Ended]')
        harness.until(lambda: '99%' in chromium.text('article.gpu'), 'the load of the first GPU')
        shown = [plain(line, scene) for line in chromium.text('body').splitlines()]
        text = '\n'.join(line for line in shown if line)
        png = with_text(chromium.page.get_screenshot_as_png(), text)
    finally:
        chromium.close()
    if LIVE_S:
        PAGE.write_bytes(png)
    assert text_of(PAGE.read_bytes()) == text, 'MGPU_PICTURES=120 makes docs/web.png anew'


@pytest.mark.parametrize('typed, shown', [
    ('plain', [('plain', '#d4d8dc')]), ('\x1b[31mred\x1b[0m \x1b[92mgreen', [('red', '#ff6b5c'), ('green', '#6fe0bd')]),
    ('\x1b[38;5;196ma\x1b[38;5;244mb\x1b[38;2;1;2;3mc', [('a', '#ff0000'), ('b', '#808080'), ('c', '#010203')]),
    ('\x1b[7mx\x1b[27my', [('x', '#14171a'), ('y', '#d4d8dc')]), ('<&>', [('&lt;&amp;&gt;', '#d4d8dc')]), ('\x1b(B\x0fx', [('x', '#d4d8dc')])],
    ids=ascii)
def test_a_terminal_is_drawn_with_its_colours(typed, shown):
    done = subprocess.run([sys.executable, ROOT / 'tools' / 'terminal-svg', 't'], input=typed, stdout=subprocess.PIPE, text=True, check=True)
    assert [(text, fill) for fill, text in re.findall(r' fill="(#\w+)"[^>]*>([^<]+)</text>', done.stdout)] == shown


def test_letters_stand_in_their_columns():
    done = subprocess.run([sys.executable, ROOT / 'tools' / 'terminal-svg', 't'], input='日本 \x1b[1mx\x1b[0m  y\n', stdout=subprocess.PIPE, text=True, check=True)
    assert re.findall(r'<text x="([\d.]+)"', done.stdout) == ['10', '52', '77.2'], done.stdout
