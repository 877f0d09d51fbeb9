// SPDX-License-Identifier: MIT
// Pieces that several views show: states, users, links to jobs, tables of jobs.
import { h } from './dom.js';
import { colourOf, duration, elementsOf, fullMoment, gpusOf, moment, numberOf, outcome, percent } from './format.js';
import { isMine } from './live.js';
import { limitOf, ranOf } from './spans.js';

// A shape for each state, so that colour is never the only difference.
const MARKS = { queued: '○', starting: '◔', running: '●', stopping: '◕', done: '✓', failed: '✕', cancelled: '⊘',
  up: '●', down: '✕', unreachable: '◌', fenced: '⊘', drained: '‖', free: '○', used: '●', shared: '◑', paused: '‖', released: '△', external: '!', lost: '✕',
  unclean: '◍', refused: '⊘', node_down: '✕', node_drained: '‖' };

export function stateBadge(name, text = name.replaceAll('_', ' ')) {
  return h('span', { class: `state state-${name}` }, h('i', { 'aria-hidden': 'true' }, MARKS[name] ?? '·'), ' ', text);
}

export const userName = (name) => h('span', { class: 'user' }, h('i', { class: `dot fill-${colourOf(name)}`, 'aria-hidden': 'true' }), name ?? '–');

export const jobLink = (job) => h('a', { class: 'row-link', href: `#/job/${numberOf(job)}` }, numberOf(job));

export const time = (value, text = moment(value)) => (value ? h('time', { datetime: value, title: fullMoment(value) }, text) : '–');

export const section = (title, ...content) => h('section', { 'aria-label': title }, h('h2', null, title), content);

export function progressBar(job) {
  if (job.progress === null || job.progress === undefined) return null;
  return h('progress', { max: 1, value: job.progress, 'aria-label': `progress of job ${numberOf(job)}` });
}

const PARKED = { early: 'started early: on the CPU, waiting for its GPUs', saving: 'being parked', parked: 'parked', waiting: 'parked, waiting for its GPUs', restoring: 'returning to its GPUs' };

/** Of one that mgpud has parked by itself: "parked for job 7, back by 15:40". */
const parkRule = (job) => `parked${job.park_guest ? ` for job ${job.park_guest}` : ''}, back by ${moment(job.latest_return)}`;

/** What a parked job is doing; null: it is not parked. */
export const parkText = (job) => (job.park === 'waiting' && job.latest_return ? parkRule(job) : PARKED[job.park] ?? null);

/** "2 GPUs busy", "idle 12m" of a running job. */
export function loadOf(job) {
  if (job.park) return h('span', { class: 'warn' }, parkText(job));
  if (job.suspended_at) return h('span', { class: 'warn' }, 'suspended');
  if (job.unreachable_since) return h('span', { class: 'warn' }, 'node unreachable');
  if (job.idle_s >= 60) return h('span', { class: job.idle_s >= 600 ? 'warn' : 'quiet' }, `idle ${duration(job.idle_s)}`);
  return h('span', null, percent(job.usage?.utilization));
}

/** The GPUs of a job: "box:0,1". */
export function grantText(job) {
  const byNode = new Map();
  for (const gpu of job.granted ?? []) {
    const node = gpu.node ?? job.node;
    byNode.set(node, [...(byNode.get(node) ?? []), gpu.index]);
  }
  return [...byNode].map(([node, list]) => `${node}:${list.join(',')}`).join(' ') || job.node || '–';
}

/** "sweep [4-99]" of an array, with the elements that have not begun. */
const nameOf = (job) => (job.array_left ? `${job.name} [${job.array_left}]` : job.name);

// The columns of the tables of jobs: heading, class, cell, and what the cell depends on.
const COLUMNS = {
  id: ['Job', 'num', (job) => jobLink(job)],
  user: ['User', '', (job) => userName(job.user)],
  name: ['Name', 'name', (job) => h('span', { title: job.command }, nameOf(job), job.status ? h('small', null, ` ${job.status}`) : null)],
  gpus: ['GPUs', 'num', (job) => gpusOf(job)],
  position: ['Place', 'num', (job) => String(job.position ?? '–')],
  where: ['On', '', (job) => grantText(job)],
  load: ['Load', 'num', (job) => loadOf(job)],
  progress: ['Progress', '', (job) => progressBar(job) ?? '–'],
  runs: ['For', 'num', (job) => time(job.started_at, job.started_at ? duration(ranOf(job)) : '')],
  until: ['Until', 'num', (job) => endOf(job)],
  waits: ['Waits', 'num', (job) => time(job.submitted_at, duration((Date.now() - Date.parse(job.submitted_at)) / 1000))],
  starts: ['Starts', 'num', (job) => startOf(job)],
  why: ['Why', 'why', (job) => job.reason_text ?? (job.hold ? 'held' : '…')],
  state: ['State', '', (job) => stateBadge(job.state)],
  outcome: ['Outcome', '', (job) => stateBadge(job.state, outcome(job))],
  ended: ['Ended', 'num', (job) => time(job.ended_at)],
  ran: ['Ran', 'num', (job) => duration(job.run_seconds)],
};

function endOf(job) {
  if (!job.started_at || !job.time_limit) return h('span', { class: 'quiet' }, 'no limit');
  return time(new Date(limitOf(job)).toISOString());
}

/** Between which moments a waiting job probably starts, by its object or by GET /jobs/ID/why; null: no more is known than one moment. */
export const intervalText = (job) => (job.eta && job.eta_from && job.eta_until && moment(job.eta_from) !== moment(job.eta_until) ? `between ${moment(job.eta_from)} and ${moment(job.eta_until)} (8 of 10 such jobs)` : null);

function startOf(job) {
  if (!job.eta) return h('span', { class: 'quiet' }, '–');
  const interval = intervalText(job) ? `, ${intervalText(job)}` : '', latest = job.eta_latest ? `, at the latest ${moment(job.eta_latest)}` : '';
  return h('time', { datetime: job.eta, title: `expected ${fullMoment(job.eta)}${interval}${latest}` }, `≈ ${moment(job.eta)}`);
}

/**
 * When a waiting job starts, by GET /jobs/ID/why, as `mgpu why` says it: the interval in which 8 of 10 such jobs start, the
 * expected start, and the latest one, with what they rest on.
 */
export function startText(why) {
  if (why.starts_now) return 'It starts in a moment.';
  const basis = (text) => (text ? ` (${text})` : '');
  const interval = intervalText(why) ? `${intervalText(why)}, ` : '';
  const expected = why.eta ? `Starts ${interval}about ${moment(why.eta)}${basis(why.eta_basis)}` : `Its start cannot be predicted${basis(why.eta_basis)}`;
  if (!why.eta_latest && why.eta_latest_basis) return `${expected}; the latest start is ${why.eta_latest_basis}.`;
  return `${expected}${why.eta_latest ? `; at the latest ${moment(why.eta_latest)}${basis(why.eta_latest_basis)}` : ''}.`;
}

/** A place in which a wide table can be moved sideways, also by keys. */
export const scrollArea = (label, table) => h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, table);

/** A table of jobs with these columns. Its rows are filled with syncRows and jobRow. */
export function jobTable(columns, caption) {
  const body = h('tbody');
  return { body, node: h('div', { class: 'scroll', tabindex: -1 }, h('table', { class: 'jobs' }, h('caption', { class: 'unseen' }, caption),
    h('thead', null, h('tr', null, columns.map((name) => h('th', { scope: 'col', class: `col-${name} ${COLUMNS[name][1]}` }, COLUMNS[name][0])))), body)) };
}

export function jobRow(job, columns) {
  return h('tr', { 'data-job': job.id, class: isMine(job) ? 'mine' : '' },
    columns.map((name) => {
      const cell = h('td', { class: COLUMNS[name][1], 'data-label': COLUMNS[name][0] }, COLUMNS[name][2](job));
      cell.classList.toggle('blank', ['', '–'].includes(cell.textContent) && !cell.firstElementChild?.matches('progress'));
      return cell;
    }));
}

/** What a row of jobs depends on: the members that it shows, and the minute for those that grow. */
export const jobSignature = (job) => [job.state, job.position, job.name, job.array_left, elementsOf(job), job.status, job.progress, job.reason_text, job.eta && moment(job.eta), job.hold,
  job.gpus, job.gpu_share, job.time_limit, job.granted?.length, job.suspended_at, parkText(job), job.unreachable_since, Math.floor((job.idle_s ?? -1) / 60),
  Math.round((job.usage?.utilization ?? -1) * 20), job.outcome, isMine(job), grow(job)];

/** A number that changes as often as the durations of the job look different. */
function grow(job) {
  const since = Date.parse(job.started_at ?? job.submitted_at);
  const seconds = (Date.now() - since) / 1000;
  return job.ended_at ? 0 : Math.floor(seconds < 60 ? seconds / 10 : seconds / 60);
}
