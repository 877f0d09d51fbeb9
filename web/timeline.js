// SPDX-License-Identifier: MIT
// Who has which GPU, had it, and until when; below, when the waiting jobs are expected to start.
import { get } from './api.js';
import { h, redraw, s } from './dom.js';
import { colourOf, gpusOf, moment, numberOf, timeOfDay } from './format.js';
import { isOpen, state } from './live.js';

const RANGES = [1, 6, 24, 72, 168]; // hours to either side of now
const ROW = 26;
const FETCH_MS = 30000;
const QUEUE_ROWS = 30;
const TICK = 108; // pixels that the text of a tick needs

/** The stretch of time that a job has its GPUs: [from, to, how the end is known]. */
function spanOf(job, now) {
  const from = Date.parse(job.started_at);
  if (job.ended_at) return [from, Date.parse(job.ended_at), 'ended'];
  if (job.time_limit) return [from, Math.max(now, from + job.time_limit * 1000), 'limit'];
  return [from, Infinity, 'open'];
}

function drawBar(job, [from, to, kind], y, at, now) {
  const x1 = at(from), x2 = at(Math.min(to, now)), x3 = at(to);
  const text = `${numberOf(job)} ${job.name}, ${job.user}, ${kind === 'ended' ? `ended ${moment(job.ended_at)}` : kind === 'limit' ? `until ${moment(new Date(to).toISOString())}` : 'without a time limit'}`;
  const colour = colourOf(job.user);
  return s('a', { href: `#/job/${numberOf(job)}`, 'aria-label': text }, s('title', null, text),
    s('rect', { class: `past fill-${colour} ${job.state}`, x: x1, y: y + 3, width: Math.max(2, x2 - x1), height: ROW - 6, rx: 3 }),
    x3 > x2 ? s('rect', { class: `rest fill-${colour} ${kind}`, x: x2, y: y + 3, width: x3 - x2, height: ROW - 6, rx: 3 }) : null,
    x2 - x1 > 46 || x3 - x1 > 46 ? s('text', { x: Math.max(x1, 0) + 6, y: y + 17, 'clip-path': `inset(0 0 0 0)` }, clip(`${numberOf(job)} ${job.user} ${job.name}`, (x3 - Math.max(x1, 0)) / 7)) : null);
}

const clip = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(0, letters - 1))}…` : text);

function ticks(from, to, at, width, height) {
  const hour = 3600000, steps = [hour / 4, hour / 2, hour, 2 * hour, 4 * hour, 6 * hour, 12 * hour, 24 * hour, 48 * hour, 96 * hour];
  const step = steps.find((one) => ((to - from) / one) * TICK <= width) ?? 7 * 24 * hour;
  const offset = new Date(from).getTimezoneOffset() * 60000;
  const marks = [];
  let day = null; // once for its ticks
  for (let time = Math.ceil((from - offset) / step) * step + offset; time < to; time += step) {
    const own = new Date(time).toDateString(), text = own === day ? timeOfDay(time) : moment(new Date(time).toISOString());
    day = own;
    marks.push(s('g', { class: 'tick' }, s('line', { x1: at(time), x2: at(time), y1: 0, y2: height }), s('text', { x: at(time) + 3, y: height + 13 }, text)));
  }
  return marks;
}

export function mount(root) {
  const place = h('div', { class: 'timeline' }), buttons = h('div', { class: 'bar' });
  const asTable = h('div');
  let range = 1, ended = [], fetchedAt = 0;
  root.append(h('h1', { class: 'unseen' }, 'Timeline'), buttons, place, h('p', { class: 'quiet legend' }, 'Left of the line: so far. Right of it, paler: until the time limit. Outlined: expected start of a waiting job. Colours are users.'), asTable);

  async function fetchEnded() {
    fetchedAt = Date.now();
    ended = (await get(`history?since=${RANGES[range]}h&limit=2000`)).jobs.filter((job) => job.started_at);
    draw();
  }

  function choose(index) {
    range = Math.min(RANGES.length - 1, Math.max(0, index));
    fetchEnded().catch(() => {});
    draw();
  }

  function picture(now, jobs, queue) {
    const labels = 84, width = Math.max(320, place.clientWidth), hours = RANGES[range] * 3600000;
    const from = now - hours, to = now + hours;
    const at = (time) => Math.min(width - labels, Math.max(0, ((time - from) / (to - from)) * (width - labels)));
    const lanes = state.gpus.map((gpu) => ({ name: state.nodes.length > 1 ? `${gpu.node}:${gpu.index}` : `GPU ${gpu.index}`, uuid: gpu.uuid }));
    const height = (lanes.length + queue.length) * ROW + (queue.length ? 14 : 0);
    const laneOf = new Map(lanes.map((lane, i) => [lane.uuid, i]));
    const bars = jobs.flatMap((job) => job.granted.filter((gpu) => laneOf.has(gpu.uuid)).map((gpu) => drawBar(job, spanOf(job, now), laneOf.get(gpu.uuid) * ROW, at, now)));
    const waiting = queue.map((job, i) => {
      const y = (lanes.length + i) * ROW + 14, start = Date.parse(job.eta);
      const x = at(start), end = at(start + (job.time_limit ?? 3600) * 1000);
      const text = `${numberOf(job)} ${job.name}, ${job.user}, ${gpusOf(job)} GPUs, expected ${moment(job.eta)}`;
      return s('a', { href: `#/job/${numberOf(job)}`, 'aria-label': text }, s('title', null, text),
        s('rect', { class: `forecast stroke-${colourOf(job.user)}`, x, y: y + 3, width: Math.max(3, end - x), height: ROW - 6, rx: 3 }),
        s('text', { x: Math.min(x, width - labels - 120) + 6, y: y + 17 }, clip(`${numberOf(job)} ${job.user} ${job.name}`, 22)));
    });
    const names = [...lanes.map((lane, i) => [lane.name, i * ROW]), ...queue.map((job, i) => [`${gpusOf(job)} GPUs`, (lanes.length + i) * ROW + 14])];
    return s('svg', { width, height: height + 20, role: 'group', 'aria-label': 'GPUs over time' },
      names.map(([name, y], i) => s('g', null, i % 2 === 0 ? s('rect', { class: 'lane', x: 0, y, width, height: ROW }) : null, s('text', { class: 'label', x: 4, y: y + 17 }, clip(name, 11)))),
      s('g', { transform: `translate(${labels} 0)` }, ticks(from, to, at, width - labels, height), bars, waiting, s('line', { class: 'now', x1: at(now), x2: at(now), y1: 0, y2: height })));
  }

  function draw() {
    const now = Date.now();
    const open = [...state.jobs.values()].filter((job) => isOpen(job) && job.started_at && job.granted?.length);
    // What has just ended is in the live list; the history is fetched seldom.
    const recent = [...state.jobs.values()].filter((job) => !isOpen(job) && job.started_at && job.granted?.length);
    const live = new Set([...open, ...recent].map((job) => job.id));
    const queue = [...state.jobs.values()].filter((job) => job.state === 'queued' && job.eta).sort((a, b) => (a.eta < b.eta ? -1 : 1)).slice(0, QUEUE_ROWS);
    const jobs = [...ended.filter((job) => !live.has(job.id)), ...recent, ...open];
    const minutes = Math.floor(now / (RANGES[range] * 20000));
    redraw(buttons, range, () => RANGES.map((hours, i) => h('button', { type: 'button', 'aria-pressed': String(i === range), onclick: () => choose(i) }, `± ${hours < 24 ? `${hours} h` : `${hours / 24} d`}`)));
    redraw(place, [minutes, place.clientWidth, jobs.map((job) => [job.id, job.state]), queue.map((job) => [job.id, moment(job.eta)]), state.gpus.length, range], () => picture(now, jobs, queue));
    redraw(asTable, [open.map((job) => job.id), queue.map((job) => job.id)], () => h('details', null, h('summary', null, 'As a table'), h('div', { class: 'scroll' }, h('table', null, h('caption', { class: 'unseen' }, 'Running and waiting jobs'), h('thead', null, h('tr', null, ['Job', 'User', 'GPUs', 'From', 'Until'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, [...open, ...queue].map((job) => h('tr', null, h('td', null, h('a', { href: `#/job/${numberOf(job)}` }, `${numberOf(job)} ${job.name}`)), h('td', null, job.user), h('td', null, job.granted?.length ? job.granted.map((gpu) => `${gpu.node ?? job.node}:${gpu.index}`).join(', ') : gpusOf(job)),
        h('td', null, job.started_at ? moment(job.started_at) : `≈ ${moment(job.eta)}`), h('td', null, job.started_at && job.time_limit ? moment(new Date(spanOf(job, now)[1]).toISOString()) : '–'))))))));
    if (now - fetchedAt > FETCH_MS && state.isOnline) fetchEnded().catch(() => {});
  }

  const onResize = () => draw();
  addEventListener('resize', onResize);
  return { draw, close: () => removeEventListener('resize', onResize), keys: { '[': () => choose(range - 1), ']': () => choose(range + 1) } };
}
