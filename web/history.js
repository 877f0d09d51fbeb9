// SPDX-License-Identifier: MIT
// Ended jobs: GPU time by day and by user, waits, and the jobs themselves.
import { get } from './api.js';
import { barChart, meter } from './chart.js';
import { h, redraw } from './dom.js';
import { duration, gpuHours, percent } from './format.js';
import { state } from './live.js';
import { jobRow, jobTable, section, userName } from './parts.js';

const RANGES = [1, 7, 30, 90]; // days
const JOBS_SHOWN = 200;
const FETCH_MS = 60000;
const COLUMNS = ['id', 'user', 'name', 'gpus', 'where', 'outcome', 'ran', 'ended'];

function userRows(sums) {
  const most = Math.max(1e-9, ...sums.map((sum) => sum.gpu_seconds));
  return sums.map((sum) => h('tr', null, h('th', { scope: 'row' }, userName(sum.user)), h('td', { class: 'num' }, String(sum.jobs)),
    h('td', null, meter(sum.gpu_seconds / most, 'load', `${gpuHours(sum.gpu_seconds)} h`, 'GPU time')),
    h('td', { class: 'num' }, sum.gpu_seconds_measured ? percent(sum.gpu_seconds_used / sum.gpu_seconds_measured) : '–'),
    h('td', { class: 'num' }, `${gpuHours(sum.gpu_seconds_wasted)} h`),
    h('td', { class: 'num' }, duration(sum.wait_seconds_median)), h('td', { class: 'num' }, duration(sum.wait_seconds_p95))));
}

function dayBars(sums) {
  return sums.map((sum) => ({ label: sum.day.slice(5), text: `${gpuHours(sum.gpu_seconds)} GPU-hours, ${gpuHours(sum.gpu_seconds_wasted)} of them unused, ${sum.jobs} jobs`,
    parts: [{ name: 'wasted', value: sum.gpu_seconds_wasted ?? 0 }, { name: 'used', value: sum.gpu_seconds - (sum.gpu_seconds_wasted ?? 0) }] }));
}

export function mount(root) {
  const buttons = h('div', { class: 'bar' }), days = h('div'), users = h('div'), table = jobTable(COLUMNS, 'Ended jobs');
  const jobs = section('Ended jobs', table.node);
  let range = 1, answer = null, fetchedAt = 0, isMine = false;
  jobs.hidden = true; // until there is something above it, or it would be pushed down
  root.append(h('h1', { class: 'unseen' }, 'History'), buttons, days, h('div', { class: 'lists' }, users, jobs));

  async function fetchAll() {
    fetchedAt = Date.now();
    const since = `since=${RANGES[range]}d`, own = isMine && state.who?.user ? `&user=${encodeURIComponent(state.who.user)}` : '';
    const [byDay, byUser, jobs] = await Promise.all([get(`history?by=day&${since}${own}`), get(`history?by=user&${since}`), get(`history?${since}${own}&limit=${JOBS_SHOWN}`)]);
    answer = { byDay: byDay.sums, byUser: byUser.sums, jobs: jobs.jobs };
    draw();
  }

  function choose(index) {
    range = Math.min(RANGES.length - 1, Math.max(0, index));
    fetchAll().catch(() => {});
  }

  function toggleMine() {
    isMine = !isMine;
    fetchAll().catch(() => {});
  }

  function draw() {
    if (Date.now() - fetchedAt > FETCH_MS && state.isOnline) fetchAll().catch(() => {});
    redraw(buttons, [range, isMine], () => [RANGES.map((count, i) => h('button', { type: 'button', 'aria-pressed': String(i === range), onclick: () => choose(i) }, count === 1 ? '1 day' : `${count} days`)),
      h('button', { type: 'button', 'aria-pressed': String(isMine), onclick: toggleMine }, 'mine only')]);
    if (!answer) return;
    jobs.hidden = false;
    redraw(days, answer.byDay, () => barChart('GPU-hours by day (solid: used, striped: allocated but unused)', dayBars(answer.byDay)));
    redraw(users, answer.byUser, () => section('By user', h('div', { class: 'scroll' }, h('table', null, h('caption', { class: 'unseen' }, 'GPU time and waits by user'),
      h('thead', null, h('tr', null, [['User', ''], ['Jobs', 'num'], ['GPU-hours', ''], ['Used', 'num'], ['Unused', 'num'], ['Wait, median', 'num'], ['Wait, 95%', 'num']].map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))),
      h('tbody', null, userRows(answer.byUser))))));
    redraw(table.body, answer.jobs.map((job) => job.id), () => answer.jobs.map((job) => jobRow(job, COLUMNS)));
  }

  return { draw, keys: { '[': () => choose(range - 1), ']': () => choose(range + 1), m: toggleMine } };
}
