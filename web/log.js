// SPDX-License-Identifier: MIT
// The live output of a job: the end of it first, then whatever it writes, through losses of the connection.
import { Terminal } from './ansi.js';
import { open } from './api.js';
import { h, setText } from './dom.js';
import { isOpen } from './live.js';
import { Screen } from './screen.js';

const FIRST_BYTES = 256 * 1024;
const RETRY_MS = 2000;

/** The logs of a job: title, parameter of the request, file name of a download, and the words in place of an empty one. */
const BOTH = { title: 'Output', stream: 'stdout', file: 'output.log', soFar: 'No output yet.', atEnd: 'No output.' };
const OUT = { ...BOTH, title: 'Standard output', soFar: 'No standard output yet.', atEnd: 'No standard output.' };
const ERR = { title: 'Standard error', stream: 'stderr', file: 'error.log', soFar: 'No standard error output yet.', atEnd: 'No standard error output.' };
export const logsOf = (job) => (job.split_log ? [OUT, ERR] : [BOTH]);

/** The view of one of logsOf(), of job `number`. `jobOf` returns the job as it is now. Close the view with close(). */
export function logView(number, log, jobOf) {
  const path = `api/v1/jobs/${number}/log?stream=${log.stream}`;
  const pane = h('div', { class: 'log', role: 'log', 'aria-live': 'off', tabindex: 0, 'aria-label': log.title });
  const follow = h('input', { type: 'checkbox', id: `follow-${log.stream}`, checked: true });
  const wrap = h('input', { type: 'checkbox', id: `wrap-${log.stream}`, checked: true });
  const status = h('span', { class: 'quiet' });
  const silence = h('p', { class: 'empty', role: 'status' });
  const terminal = jobOf()?.tty ? new Screen(pane) : new Terminal(pane);
  let controller = new AbortController(), isClosed = false, position = null, hasText = false;

  const atEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 30;
  pane.addEventListener('scroll', () => { follow.checked = atEnd(); });
  wrap.addEventListener('change', () => pane.classList.toggle('nowrap', !wrap.checked));
  follow.addEventListener('change', () => { if (follow.checked) pane.scrollTop = pane.scrollHeight; });

  /** Words in place of an empty pane. */
  function drawSilence() {
    const isSilent = position === 0 && !hasText;
    pane.hidden = !hasText;
    setText(silence, isSilent ? (isOpen(jobOf() ?? {}) ? log.soFar : log.atEnd) : '');
    silence.hidden = !isSilent;
  }

  function write(text) {
    hasText ||= text !== '';
    drawSilence();
    const isFollowing = follow.checked;
    terminal.write(text);
    if (isFollowing) pane.scrollTop = pane.scrollHeight;
  }

  /** Reads on from `position`; the first time, the end of what is there. */
  async function read() {
    const range = position === null ? `bytes=-${FIRST_BYTES}` : `bytes=${position}-`;
    const response = await open(`${path}&follow=1`, { headers: { Range: range }, signal: controller.signal });
    if (position === null) {
      position = Number(/bytes (\d+)-/.exec(response.headers.get('Content-Range') ?? '')?.[1] ?? 0);
      if (position > 0) write(`\x1b[2m… ${position} earlier bytes\x1b[0m\n`);
    }
    setText(status, '');
    drawSilence();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      position += value.byteLength;
      write(decoder.decode(value, { stream: true }));
    }
  }

  async function run() {
    while (!isClosed) {
      try {
        await read();
        drawSilence();
        if (!isOpen(jobOf() ?? {})) return;
      } catch (error) {
        if (isClosed) return;
        if (error.code === 'bad_range') {
          position ??= 0; // an empty file has no last bytes
          drawSilence();
          if (!isOpen(jobOf() ?? {})) return;
        } else setText(status, error.status ? error.message : 'no connection');
        if ([403, 404].includes(error.status) && !isOpen(jobOf() ?? {})) return;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  function onVisibility() {
    if (document.hidden) controller.abort();
    else controller = new AbortController();
  }

  document.addEventListener('visibilitychange', onVisibility);
  drawSilence();
  run();
  return {
    draw: drawSilence,
    title: log.title,
    node: h('div', { class: 'logbox' },
      h('div', { class: 'bar' }, h('label', { for: follow.id }, follow, ' follow'), h('label', { for: wrap.id }, wrap, ' wrap'), status,
        h('a', { class: 'button', href: path, download: log.file }, 'Download')), silence, pane),
    follow() { follow.click(); },
    close() {
      isClosed = true;
      controller.abort();
      document.removeEventListener('visibilitychange', onVisibility);
    },
  };
}
