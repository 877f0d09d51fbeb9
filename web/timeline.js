// SPDX-License-Identifier: MIT
// Who has which GPU, had it, and until when; below, when the waiting jobs are expected to start. What is drawn solid is expected
// to be so, and expected starts rest on it: it never overlaps. Until its time limit, a job has a thin tail.
import { get } from './api.js';
import { ticksOf } from './axis.js';
import { h, redraw, s } from './dom.js';
import { colourOf, gpusText, moment, numberOf } from './format.js';
import { isOpen, state } from './live.js';
import { intervalText, parkText, scrollArea } from './parts.js';
import { forecastOf, hasParks, limitOf, spansOf } from './spans.js';

const RANGES = [1, 6, 24, 72, 168]; // hours to either side of now
const ROW = 26;
const FETCH_MS = 30000;
const QUEUE_ROWS = 30;
const CAPTION_MIN = 46, WAITING_CAPTION = 160; // pixels that the name of a job needs at least, and gets beside a forecast
const DETAILS = 40; // jobs whose events are fetched

const until = (job) => (job.ended_at ? `ended ${moment(job.ended_at)}` : [
  job.park ? parkText(job) : null,
  job.expected_end ? `expected until ${moment(job.expected_end)}` : null,
  job.time_limit ? `limit ${moment(limitOf(job))}` : 'without a time limit'].filter(Boolean).join(', '));

/** A rectangle in a row that begins at `y`: as high as its kind says. */
function piece({ kind, from, to }, colour, state, y, at) {
  const x = at(from), width = Math.max(kind === 'tail' ? 0 : 2, at(to) - x), thin = kind === 'tail';
  const place = { x, y: y + (thin ? ROW / 2 - 2 : 3), width, height: thin ? 4 : ROW - 6, rx: thin ? 2 : 3 };
  return [s('rect', { class: `${kind} fill-${colour} ${state}`, ...place }), kind === 'parked' ? s('rect', { class: 'hatch', fill: 'url(#hatch)', ...place }) : null];
}

/** The text on a bar, cut off where the bar ends: a nested image is its frame. */
const caption = (text, x, y, width) => (width > CAPTION_MIN ? s('svg', { x, y, width, height: ROW }, s('text', { x: 6, y: 17 }, text)) : null);

/** The bars of one job in the row of one GPU. */
function drawJob(job, uuid, y, at, now) {
  const spans = spansOf(job, now).filter((span) => span.granted.some((gpu) => gpu.uuid === uuid) && at(span.to) > at(span.from) - 1);
  if (!spans.length) return null;
  const name = `${numberOf(job)} ${job.user} ${job.name}`, text = `${name}, ${until(job)}`;
  const body = spans.filter((span) => span.kind !== 'tail' && span.kind !== 'parked');
  const from = at(Math.min(...body.map((span) => span.from))), to = at(Math.max(...body.map((span) => span.to)));
  return s('a', { href: `#/job/${numberOf(job)}`, 'aria-label': text }, s('title', null, text),
    spans.map((span) => piece(span, colourOf(job.user), job.state, y, at)), body.length ? caption(name, from, y, to - from) : null);
}

/** A bracket below the bar of a waiting job: between which moments it probably starts. */
function drawInterval(job, y, at) {
  if (!intervalText(job)) return null;
  const from = at(Date.parse(job.eta_from)), to = Math.max(from + 2, at(Date.parse(job.eta_until))), line = y + ROW - 1;
  return s('path', { class: `interval stroke-${colourOf(job.user)}`, d: `M${from} ${line - 5}V${line}H${to}V${line - 5}` });
}

/** A waiting job, in its own row. */
function drawWaiting(job, y, at, width) {
  const name = `${numberOf(job)} ${job.user} ${job.name}`, text = `${name}, ${gpusText(job)}, expected ${moment(job.eta)}${job.expected_end ? ` to ${moment(job.expected_end)}` : ''}${intervalText(job) ? `, start ${intervalText(job)}` : ''}`;
  const [body, tail] = forecastOf(job), x = at(body.from), end = Math.max(x + 3, at(body.to));
  return s('a', { href: `#/job/${numberOf(job)}`, 'aria-label': text }, s('title', null, text),
    at(tail.to) > end ? s('rect', { class: `tail fill-${colourOf(job.user)}`, x: end, y: y + ROW / 2 - 2, width: at(tail.to) - end, height: 4, rx: 2 }) : null,
    s('rect', { class: `forecast stroke-${colourOf(job.user)}`, x, y: y + 3, width: end - x, height: ROW - 6, rx: 3 }),
    drawInterval(job, y, at), caption(name, Math.min(x, width - WAITING_CAPTION), y, WAITING_CAPTION));
}

const clip = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(0, letters - 1))}…` : text);

const ticks = (from, to, at, width, height) => ticksOf(from, to, width).map((tick) => s('g', { class: 'tick' },
  s('line', { x1: at(tick.at), x2: at(tick.at), y1: 0, y2: height }), s('text', { x: at(tick.at) + 3, y: height + 13 }, tick.text)));

/** The pattern of parked stretches: lines in the colour of the ground. */
const hatch = () => s('defs', null, s('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, s('rect', { class: 'hatchline', width: 3, height: 6 })));

/** Parked jobs first: others may have their GPUs, and are drawn over them. */
const onTop = (jobs) => [...jobs.filter(hasParks), ...jobs.filter((job) => !hasParks(job))];

export function mount(root) {
  const place = h('div', { class: 'timeline' }), buttons = h('div', { class: 'bar' });
  const asTable = h('div'), nothing = h('p', { class: 'empty', hidden: true }, 'No jobs used GPUs in this period, and none are waiting for them.');
  const details = new Map(); // id: { key, events } of jobs that were parked
  let range = 1, ended = [], fetchedAt = 0;
  root.append(h('h1', { class: 'unseen' }, 'Timeline'), buttons, nothing, place, h('p', { class: 'quiet legend' }, 'Left of the line: the past. Right of the line: up to the expected end; thin: up to the time limit. Outlined: waiting jobs, from their expected start; the bracket below is the interval in which 8 of 10 such jobs start. Hatched: parked. Each colour is a user.'), asTable);

  async function fetchEnded() {
    fetchedAt = Date.now();
    ended = (await get(`history?since=${RANGES[range]}h&limit=2000`)).jobs.filter((job) => job.started_at);
    draw();
  }

  /** Jobs that were parked, with their events once these are there. */
  function withEvents(jobs) {
    for (const job of jobs.filter(hasParks).slice(0, DETAILS)) {
      const key = `${job.state} ${job.park}`;
      if (details.get(job.id)?.key === key) continue;
      details.set(job.id, { ...details.get(job.id), key });
      get(`jobs/${job.id}`).then(({ events }) => {
        details.set(job.id, { key, events });
        draw();
      }).catch(() => details.delete(job.id));
    }
    return jobs.map((job) => (details.get(job.id)?.events ? { ...job, events: details.get(job.id).events } : job));
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
    const bars = lanes.flatMap((lane, i) => onTop(jobs).map((job) => drawJob(job, lane.uuid, i * ROW, at, now)));
    const waiting = queue.map((job, i) => drawWaiting(job, (lanes.length + i) * ROW + 14, at, width - labels));
    const names = [...lanes.map((lane, i) => [lane.name, i * ROW]), ...queue.map((job, i) => [gpusText(job), (lanes.length + i) * ROW + 14])];
    return s('svg', { width, height: height + 20, role: 'group', 'aria-label': 'GPUs over time' }, hatch(),
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
    const jobs = withEvents([...ended.filter((job) => !live.has(job.id)), ...recent, ...open]);
    nothing.hidden = jobs.length + queue.length > 0 || !state.isComplete;
    const minutes = Math.floor(now / (RANGES[range] * 20000));
    redraw(buttons, range, () => RANGES.map((hours, i) => h('button', { type: 'button', 'aria-pressed': String(i === range), onclick: () => choose(i) }, `± ${hours < 24 ? `${hours} h` : `${hours / 24} d`}`)));
    redraw(place, [minutes, place.clientWidth, jobs.map((job) => [job.id, job.state, parkText(job), job.events?.length, job.ended_at ? null : moment(job.expected_end), job.time_limit]), queue.map((job) => [job.id, ...[job.eta, job.eta_from, job.eta_until, job.expected_end].map(moment)]), state.gpus.length, range], () => picture(now, jobs, queue));
    redraw(asTable, [open.map((job) => [job.id, moment(job.expected_end), job.time_limit]), queue.map((job) => [job.id, ...[job.eta, job.eta_from, job.eta_until, job.expected_end].map(moment)])], () => h('details', null, h('summary', null, 'As a table'), scrollArea('Running and waiting jobs', h('table', null, h('caption', { class: 'unseen' }, 'Running and waiting jobs'), h('thead', null, h('tr', null, ['Job', 'User', 'GPUs', 'From', 'Expected until', 'Limit'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, [...open, ...queue].map((job) => h('tr', null, h('td', null, h('a', { href: `#/job/${numberOf(job)}` }, `${numberOf(job)} ${job.name}`)), h('td', null, job.user), h('td', null, job.granted?.length ? job.granted.map((gpu) => `${gpu.node ?? job.node}:${gpu.index}`).join(', ') : gpusText(job)),
        h('td', null, job.started_at ? moment(job.started_at) : `≈ ${moment(job.eta)}${intervalText(job) ? ` (${moment(job.eta_from)} to ${moment(job.eta_until)})` : ''}`), h('td', null, moment(job.expected_end)), h('td', null, job.started_at && job.time_limit ? moment(limitOf(job)) : '–'))))))));
    if (now - fetchedAt > FETCH_MS && state.isOnline) fetchEnded().catch(() => {});
  }

  const onResize = () => draw();
  addEventListener('resize', onResize);
  return { draw, close: () => removeEventListener('resize', onResize), keys: { '[': () => choose(range - 1), ']': () => choose(range + 1) } };
}
