// SPDX-License-Identifier: MIT
// Ended jobs: GPU time by day, hour, user or GPU, compared with the period before, waits, and the jobs themselves. A bar is a
// button: it narrows all of it to its day, hour, user or GPU. Days are those of UTC, as mgpud sums them up; where something narrows the
// view, the sums are made here of the jobs themselves.
import { get } from './api.js';
import { barChart, meter } from './chart.js';
import { h, redraw } from './dom.js';
import { duration, figure, gpuHours, percent, plural } from './format.js';
import { state } from './live.js';
import { jobRow, jobTable, scrollArea, section, userName } from './parts.js';
import { DAY, HOUR, allDays, gpuName, ranIn, sumsBy, sumsByStep, total } from './sums.js';

const RANGES = [1, 7, 30, 90]; // days
const JOBS_SHOWN = 200;
const JOBS_SUMMED = 2000;
const HOURS_MAX = 7 * 24 + 24; // bars
const FETCH_MS = 60000;
const COLUMNS = ['id', 'user', 'name', 'gpus', 'where', 'outcome', 'ran', 'ended'];
const MODES = ['day', 'hour', 'user', 'GPU'];

const utcDay = (at) => new Date(at).toISOString().slice(0, 10);
const utcHour = (at) => `${new Date(at).toISOString().slice(11, 13)}:00`;

// How each of what narrows the view is called on its button.
const NARROWED = { day: utcDay, hour: (at) => `${utcDay(at)} ${utcHour(at)}`, user: String, GPU: String };

/** { from, to } of the whole range in ms: whole days of UTC, or the last 24 hours. */
function rangeOf(days) {
  const now = Date.now();
  return { from: days === 1 ? now - DAY : Math.floor(now / DAY) * DAY - (days - 1) * DAY, to: now };
}

function userRows(sums) {
  const most = Math.max(1e-9, ...sums.map((sum) => sum.gpu_seconds));
  return sums.map((sum) => h('tr', null, h('th', { scope: 'row' }, userName(sum.user)), h('td', { class: 'num' }, String(sum.jobs)),
    h('td', null, meter(sum.gpu_seconds / most, 'load', `${gpuHours(sum.gpu_seconds)} h`, 'GPU time')),
    h('td', { class: 'num' }, sum.gpu_seconds_measured ? percent(sum.gpu_seconds_used / sum.gpu_seconds_measured) : '–'),
    h('td', { class: 'num' }, `${gpuHours(sum.gpu_seconds_wasted)} h`),
    h('td', { class: 'num' }, duration(sum.wait_seconds_median)), h('td', { class: 'num' }, duration(sum.wait_seconds_p95))));
}

function userTable(sums) {
  const heads = [['User', ''], ['Jobs', 'num'], ['GPU-hours', ''], ['Used', 'num'], ['Unused', 'num'], ['Wait, median', 'num'], ['Wait, 95%', 'num']];
  return section('By user', scrollArea('GPU time and waits by user', h('table', null, h('caption', { class: 'unseen' }, 'GPU time and waits by user'),
    h('thead', null, h('tr', null, heads.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))), h('tbody', null, userRows(sums)))));
}

/** "+12 %" of a value compared with one before. */
function change(now, before) {
  if (!before) return null;
  const part = Math.round((now / before - 1) * 100);
  return part === 0 ? 'unchanged' : `${part > 0 ? '+' : '−'}${Math.abs(part)} %`;
}

/** Sums of this period beside those of the one before. */
function comparison(now, before, days) {
  const unused = (sum) => (sum.gpu_seconds ? sum.gpu_seconds_wasted / sum.gpu_seconds : null), hours = (sum) => figure(sum.gpu_seconds / 3600);
  const period = days === 1 ? 'the previous day' : `the previous ${days} days`;
  const past = (value, previous, shown) => [change(value, previous), `${shown} in ${period}`].filter(Boolean).join('; ');
  const rows = [[hours(now), 'GPU-hours', past(now.gpu_seconds, before.gpu_seconds, hours(before))],
    [percent(unused(now)), 'unused', before.gpu_seconds ? `${percent(unused(before))} in ${period}` : ''],
    [String(now.jobs), now.jobs === 1 ? 'job ended' : 'jobs ended', past(now.jobs, before.jobs, before.jobs)]];
  return rows.map(([value, label, note]) => h('div', { class: 'tile' }, h('b', null, value), h('span', null, note ? `${label} (${note})` : label)));
}

export function mount(root) {
  const buttons = h('div', { class: 'bar' }), figures = h('div', { class: 'tiles' }), chart = h('div'), nothing = h('p', { class: 'empty', hidden: true }), users = h('div');
  const table = jobTable(COLUMNS, 'Ended jobs'), few = h('p', { class: 'quiet', hidden: true }), jobs = section('Ended jobs', table.node, few);
  let range = 1, mode = 'day', narrow = {}, answer = null, fetchedAt = 0, isMine = false, turn = 0;
  jobs.hidden = true; // until there is something above it, or it would be pushed down
  root.append(h('h1', { class: 'unseen' }, 'History'), buttons, figures, nothing, chart, h('div', { class: 'lists' }, users, jobs));

  /** What is looked at, in ms: an hour, a day, or the whole range. */
  function period() {
    if (narrow.hour) return { from: narrow.hour, to: narrow.hour + HOUR };
    if (narrow.day) return { from: narrow.day, to: narrow.day + DAY };
    return rangeOf(RANGES[range]);
  }

  async function fetchAll() {
    const own = ++turn, { from, to } = rangeOf(RANGES[range]), text = (at) => new Date(at).toISOString();
    fetchedAt = Date.now();
    const user = narrow.user ?? (isMine ? state.who?.user : null), of = user ? `&user=${encodeURIComponent(user)}` : '';
    const since = `since=${text(from)}`, before = `since=${text(2 * from - to)}&until=${text(from)}`;
    const [byDay, byUser, list, past] = await Promise.all([get(`history?by=day&${since}${of}`), get(`history?by=user&${since}${of}`),
      get(`history?${since}${of}&limit=${JOBS_SUMMED}`), get(`history?by=day&${before}${of}`)]);
    if (own !== turn) return;
    answer = { from, to, byDay: byDay.sums, byUser: byUser.sums, jobs: list.jobs, past: past.sums };
    draw();
  }

  const refetch = () => fetchAll().catch(() => {});

  function choose(index) {
    range = Math.min(RANGES.length - 1, Math.max(0, index));
    narrow = { user: narrow.user, GPU: narrow.GPU };
    mode = RANGES[range] === 1 ? 'hour' : 'day';
    refetch();
  }

  function toggleMine() {
    isMine = !isMine;
    refetch();
  }

  const isPossible = (one) => (one === 'day' ? !narrow.day && RANGES[range] > 1 : one === 'hour' ? !narrow.hour && (period().to - period().from) / HOUR <= HOURS_MAX : true);

  /** Narrows the view, or with null lifts that, and shows what is next of interest. */
  function narrowTo(name, value, next) {
    narrow = { ...narrow, [name]: value ?? undefined };
    if (name === 'day') delete narrow.hour;
    mode = next ?? mode;
    if (!isPossible(mode)) mode = MODES.find(isPossible);
    if (name === 'user') refetch();
    draw();
  }

  const afterTime = () => (narrow.hour ? 'GPU' : narrow.day || RANGES[range] === 1 ? 'hour' : 'day');

  /** The jobs of the period and what narrows it. */
  const chosenJobs = ({ from, to }) => answer.jobs.filter((job) => (!narrow.GPU || job.granted?.some((gpu) => gpuName(job, gpu) === narrow.GPU)) &&
    (narrow.day || narrow.hour ? ranIn(job, from, to) : true));

  function sumsOf(at) {
    const list = narrow.GPU ? answer.jobs.filter((job) => job.granted).map((job) => ({ ...job, granted: job.granted.filter((gpu) => gpuName(job, gpu) === narrow.GPU) })) : answer.jobs;
    if (mode === 'day' && !narrow.GPU) return allDays(answer.byDay, at.from, at.to);
    if (mode === 'day') return sumsByStep(list, at.from, at.to, DAY);
    if (mode === 'hour') return sumsByStep(list, at.from, at.to, HOUR);
    if (mode === 'user' && !narrow.GPU && !narrow.day && !narrow.hour) return answer.byUser.map((sum) => ({ ...sum, key: sum.user }));
    return sumsBy(list, at.from, at.to, mode === 'user' ? (job) => job.user : gpuName);
  }

  // Of each mode: the label of a bar, and what a click on it does.
  const LABELS = { day: (key) => utcDay(key).slice(5), hour: utcHour, user: String, GPU: String };
  const ACTS = { day: (key) => narrowTo('day', key, 'hour'), hour: (key) => narrowTo('hour', key, 'GPU'), user: (key) => narrowTo('user', key, afterTime()), GPU: (key) => narrowTo('GPU', key, afterTime()) };

  function drawChart(at) {
    const sums = sumsOf(at), past = mode === 'day' && !narrow.GPU ? allDays(answer.past, 2 * at.from - at.to, at.from).slice(-sums.length) : [];
    const bars = sums.map((sum, i) => ({ label: LABELS[mode](sum.key), before: (past[i]?.gpu_seconds ?? 0) / 3600, act: () => ACTS[mode](sum.key),
      text: `${figure(sum.gpu_seconds / 3600)} GPU-hours, ${figure((sum.gpu_seconds_wasted ?? 0) / 3600)} of them unused, ${plural(sum.jobs, 'job')}${past[i] ? `; ${figure(past[i].gpu_seconds / 3600)} GPU-hours in the previous period` : ''}`,
      parts: [{ name: 'wasted', value: (sum.gpu_seconds_wasted ?? 0) / 3600 }, { name: 'used', value: (sum.gpu_seconds - (sum.gpu_seconds_wasted ?? 0)) / 3600 }] }));
    const isEmpty = sums.every((sum) => !sum.jobs);
    nothing.hidden = !isEmpty;
    nothing.textContent = `No jobs ended in ${narrow.hour || narrow.day ? 'this period' : RANGES[range] === 1 ? 'the last day' : `the last ${RANGES[range]} days`}${Object.keys(narrow).some((name) => narrow[name]) || isMine ? ' with this selection' : ''}.`;
    redraw(chart, [mode, narrow, bars, root.clientWidth], () => (isEmpty ? [] : barChart({ title: `GPU-hours by ${mode}`, width: root.clientWidth, bars,
      format: figure, note: `solid: used, striped: allocated but unused${mode === 'day' || mode === 'hour' ? '; days and hours in UTC' : ''}${past.length ? '; line: the previous period' : ''}` })));
  }

  function drawButtons() {
    const press = (text, isPressed, act, title = null) => h('button', { type: 'button', 'aria-pressed': String(isPressed), onclick: act, title }, text);
    redraw(buttons, [range, mode, narrow, isMine], () => [RANGES.map((count, i) => press(plural(count, 'day'), i === range, () => choose(i))), press('mine only', isMine, toggleMine),
      h('span', { class: 'quiet' }, 'by'), MODES.filter(isPossible).map((one) => press(one, one === mode, () => {
        mode = one;
        draw();
      })), Object.entries(narrow).filter(([, value]) => value).map(([name, value]) => h('button', { type: 'button', class: 'chip', 'aria-label': `Remove the filter ${NARROWED[name](value)}`, onclick: () => narrowTo(name, null, name === 'day' ? 'day' : name === 'hour' ? 'hour' : null) }, `${NARROWED[name](value)} ×`))]);
  }

  function draw() {
    if (Date.now() - fetchedAt > FETCH_MS && state.isOnline) refetch();
    drawButtons();
    if (!answer) return;
    const at = narrow.day || narrow.hour ? period() : answer, shown = chosenJobs(at);
    jobs.hidden = false;
    redraw(figures, [answer, range], () => comparison(total(answer.byDay), total(answer.past), RANGES[range]));
    drawChart(at);
    redraw(users, [answer.byUser, narrow.user], () => (answer.byUser.length ? userTable(answer.byUser) : []));
    redraw(table.body, shown.map((job) => job.id), () => shown.slice(0, JOBS_SHOWN).map((job) => jobRow(job, COLUMNS)));
    jobs.hidden = shown.length === 0;
    few.hidden = shown.length <= JOBS_SHOWN && answer.jobs.length < JOBS_SUMMED;
    few.textContent = `The newest ${Math.min(JOBS_SHOWN, shown.length)} are shown.${answer.jobs.length < JOBS_SUMMED ? '' : ` Sums by hour and GPU are of the newest ${JOBS_SUMMED} jobs.`}`;
  }

  const onResize = () => draw();
  addEventListener('resize', onResize);
  return { draw, close: () => removeEventListener('resize', onResize), keys: { '[': () => choose(range - 1), ']': () => choose(range + 1), m: toggleMine } };
}
