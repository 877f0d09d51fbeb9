# SPDX-License-Identifier: MIT
"""The documents as HTML: what tools/docs-html makes of Markdown, and what mgpud serves behind the help of its page."""

import gzip
import http.client
import pathlib
import re
import subprocess

import pytest

import harness

ROOT = pathlib.Path(__file__).parents[2]
DOCS = sorted(path.name[:-3] for path in (ROOT / 'docs').glob('*.md'))
PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'
GPUS = 'sim:1x8G'


def convert(folder, text):
    """The body of a page, or the error."""
    (folder / 'other.md').write_text('# Other\n')
    (folder / 'page.md').write_text(text)
    (folder / 'a.svg').write_text('<svg/>')
    done = subprocess.run([ROOT / 'tools' / 'docs-html', folder / 'out', folder / 'page.md', folder / 'other.md', folder / 'a.svg'],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return done.stderr
    return re.search(r'(?s)<main>\n(.*)\n</main>', (folder / 'out' / 'page.html').read_text()).group(1)


@pytest.mark.parametrize('text, body', [
    ('## A `b` of [c](other.md)', '<h2 id="a-b-of-c">A <code>b</code> of <a href="other.html">c</a></h2>'),
    ('one\ntwo *three* **four** a*b', '<p>one two <em>three</em> <strong>four</strong> a*b</p>'),
    ('`<a> & *b*` <c>', '<p><code>&lt;a&gt; &amp; *b*</code> &lt;c&gt;</p>'),
    ('[`x`](nosuch.md), [y](other.md#z), [w](https://h.example/?a&b)',
     '<p><code>x</code>, <a href="other.html#z">y</a>, <a href="https://h.example/?a&amp;b">w</a></p>'),
    ('```\n<b>\n\n# x\n```', '<pre><code>&lt;b&gt;\n\n# x</code></pre>'),
    ('    $ a\n\n    b\n\nc', '<pre><code>$ a\n\nb</code></pre>\n<p>c</p>'),
    ('- a\n  more\n- b', '<ul>\n<li>a more\n</li>\n<li>b\n</li>\n</ul>'),
    ('1. a\n2. b', '<ol>\n<li>a\n</li>\n<li>b\n</li>\n</ol>'),
    ('| a | b |\n|---|---|\n| `x \\| y` | z |', '<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td><code>x | y</code></td><td>z</td></tr>\n</table>'),
    ('![a <b>](a.svg)', '<p><img src="a.svg" alt="a &lt;b&gt;"></p>'),
    ('# A\n\n## B\n\n## B', '<h1 id="a">A</h1>\n<h2 id="b">B</h2>\n<h2 id="b-1">B</h2>')])
def test_markdown_becomes_html(tmp_path, text, body):
    assert convert(tmp_path, text) == body


@pytest.mark.parametrize('text', ['![picture](x.png)', '<script>alert(1)</script>', '> quoted', '```\nno end', '| a | b |\n| c | d |'])
def test_markdown_that_is_not_known_is_refused(tmp_path, text):
    assert convert(tmp_path, text).startswith('docs-html: ')


def test_every_document_is_behind_the_help_of_the_page(box):
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)

    def get(path):
        connection.request('GET', path, headers={'Accept-Encoding': 'gzip'})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, path
        assert "default-src 'none'" in answer.headers['Content-Security-Policy']
        content = gzip.decompress(content)
        return content if path.endswith('.png') else content.decode()

    assert "'page/README.html'" in get('/page/main.js')
    connection.request('GET', '/')
    assert b'<main' in connection.getresponse().read(), 'the way back of each document'
    pages = {f'{name}.html': get(f'/page/{name}.html') for name in DOCS}
    assert 'max-width' in get('/page/docs.css')
    for name, text in pages.items():
        assert text.count('<header><a href="../">Back to the page of mgpu</a>') == 1, name
        assert 'href="../"' not in (pathlib.Path(harness.build_folder()) / 'src/controller/web' / name).read_text(), f'{name} as a file of its own'
        assert re.search('<h1 id="[^"]+">[^<]', text), name
        for picture in re.findall('<img src="([^"]*)"', text):
            assert get(f'/page/{picture}').startswith(b'\x89PNG') if picture.endswith('.png') else '<svg' in get(f'/page/{picture}'), (name, picture)
        for target in re.findall('href="([^":]*)"', text):
            page, _, anchor = target.partition('#')
            if page in ('docs.css', 'icon.svg', '../'):
                continue
            assert (page or name) in pages, (name, target)
            assert not anchor or f'id="{anchor}"' in pages[page or name], (name, target)
    connection.close()
