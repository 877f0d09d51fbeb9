// SPDX-License-Identifier: MIT
// One job: what it is, why it waits, its output, its use of the GPUs, its history.
import { applyChange, cancel, hold, park, requeue, retry, setPriority, setTimeLimit } from './actions.js';
import { get, submitKey } from './api.js';
import { niceMax } from './chart.js';
import { h, redraw } from './dom.js';
import { bytes, duration, elementsOf, endWords, exactTime, fullMoment, gpusOf, gpusText, moment, numberOf, outcome, percent, plural } from './format.js';
import { isOpen, isSplitUp, mayControl, mayRead, state, waits, watchEvents } from './live.js';
import { logView, logsOf } from './log.js';
import { grantText, parkText, progressBar, scrollArea, section, startText, stateBadge, time, userName } from './parts.js';
import { momentOf, spansOf } from './spans.js';
import { timeTracks } from './tracks.js';

const FETCH_MS = 5000;
const PAST_S = 7 * 24 * 3600; // mgpud keeps samples for so long
const CHART_POINTS = 240;
const GPUS_DRAWN = 8;

const isKnown = (value) => value !== null && value !== undefined;
const linkTo = (id) => h('a', { href: `#/job/${id}` }, String(id));
const jobLinks = (ids) => ids.slice(0, 12).map((id) => [' ', linkTo(id)]);

function facts(job) {
  const usage = job.usage;
  return [
    ['User', userName(job.user)],
    ['GPUs', `${gpusOf(job)}${job.granted?.length ? ` on ${grantText(job)}` : ''}`],
    job.cpus || job.memory ? ['Host', [job.cpus && plural(job.cpus, 'CPU'), job.memory && bytes(job.memory)].filter(Boolean).join(', ')] : null,
    ['Submitted', time(job.submitted_at)],
    job.started_at ? ['Started', h('span', null, time(job.started_at), ` after ${duration(job.wait_seconds)}`)] : null,
    job.ended_at ? ['Ended', h('span', null, time(job.ended_at), job.started_at ? ` after ${duration(job.run_seconds)}` : '')] : null,
    job.time_limit ? ['Time limit', duration(job.time_limit)] : ['Time limit', 'none'],
    ['Priority', String(job.priority)],
    job.after ? ['After', job.after] : null,
    job.array ? ['Array', `${job.array}${job.array_left ? `, not begun: ${job.array_left}` : ''}`] : null,
    elementsOf(job) ? ['Elements', `${elementsOf(job)} of ${job.elements.all}`] : null,
    job.attempt > 1 ? ['Attempt', String(job.attempt)] : null,
    job.status ? ['Status', job.status] : null,
    isKnown(usage?.utilization) ? ['GPU load', `${percent(usage.utilization)} on average, peak ${percent(usage.utilization_peak)}`] : null,
    isKnown(usage?.gpu_memory_peak_bytes) ? ['GPU memory', `peak ${bytes(usage.gpu_memory_peak_bytes)} of ${bytes(usage.gpu_memory_bytes)}`] : null,
    usage?.memory_peak_bytes ? ['Host memory', `peak ${bytes(usage.memory_peak_bytes)}`] : null,
    usage?.idle_gpu_seconds >= 1 ? ['Unused', `${duration(usage.idle_gpu_seconds)} of GPU time`] : null,
    usage?.fault ? ['GPU error', h('span', { class: 'bad' }, usage.fault)] : null,
    job.park ? [job.park === 'early' ? 'Early start' : 'Parked', [parkText(job), job.parked_at ? [' since ', time(job.parked_at)] : '']] : null,
    job.gpus_at ? ['Early start', `on the CPU for ${duration(job.early_seconds)} before it had its GPUs, ${duration(job.saved_seconds)} saved`] : null,
    job.park_host ? ['Instead of', ['job ', linkTo(job.park_host), ', which is parked for it']] : null,
    job.park_text ? ['Parking', job.park_text] : null,
    job.gpus_due_to ? ['Its GPUs', [`due at ${moment(job.gpus_due_at)} to job `, linkTo(job.gpus_due_to), ': it starts again, once, if it still runs then']] : null,
    job.gpus_lent_to ? ['Its GPUs', ['lent to job ', linkTo(job.gpus_lent_to), ', which starts again if it still runs when this one returns']] : null,
    job.reclaimed_by ? ['Reclaimed', ['because its GPUs were due to job ', linkTo(job.reclaimed_by), ', which was parked; this happens once']] : null,
    job.park_bar ? ['Parking', `not for shorter jobs: ${job.park_bar}`] : null,
    job.message ? ['Message', h('span', { class: job.state === 'failed' ? 'bad' : '' }, job.message)] : null,
    job.cwd ? ['Directory', h('code', null, job.cwd)] : null,
    job.log ? ['Output file', h('code', null, job.log)] : null,
    job.error ? ['Standard error', h('code', null, job.error)] : null,
    job.log && job.split_log ? ['Standard error', h('code', null, `${job.log}.err`)] : null,
  ].filter(Boolean);
}

function buttons(job) {
  const button = (text, act, name = '') => h('button', { type: 'button', class: name, onclick: act }, text);
  if (!mayControl(job)) return [];
  if (!isOpen(job)) return state.who?.uid === job.uid ? [button('Submit again', () => retry(job, submitKey()), 'primary')] : [];
  return [
    waits(job) ? button(job.hold ? 'Release' : 'Hold', () => hold(job)) : null,
    waits(job) ? button('Priority', () => setPriority(job)) : null,
    button('Time limit', () => setTimeLimit(job)),
    job.state === 'running' && job.granted.length && (!job.park || job.park === 'parked') ? button(job.park ? 'Unpark' : 'Park', () => park(job)) : null,
    job.state === 'running' ? button('Requeue', () => requeue(job)) : null,
    button('Cancel', () => cancel(job), 'danger'),
  ];
}

function whyPanel(job, why) {
  const change = why.change && h('p', { class: 'hint' }, why.change.text, ' ',
    mayControl(job) ? h('button', { type: 'button', onclick: () => applyChange(job, why.change.edit) }, 'Apply this change') : null);
  return section('Why it waits',
    h('ul', { class: 'reasons' }, why.reasons.map((reason) => h('li', null, reason.text, reason.jobs.length ? h('span', { class: 'quiet' }, ' jobs', jobLinks(reason.jobs)) : null,
      reason.until ? h('span', { class: 'quiet' }, ` until ${moment(reason.until)}`) : null))),
    h('p', null, startText(why)),
    why.parking ? h('p', null, `Parking: ${why.parking.text}.`) : null,
    why.borrowing ? h('p', null, `Borrowing: ${why.borrowing}.`) : null,
    why.ahead.length ? h('p', null, `${plural(why.ahead.length, 'job')} ahead of it:`, why.ahead.slice(0, 8).map((other, i) => [i ? '; ' : ' ', h('a', { href: `#/job/${other.id}` }, `${numberOf(other)} ${other.name}`), h('span', { class: 'quiet' }, ` ${other.user}, ${gpusText(other)}${other.ends ? `, ends ${moment(other.ends)}` : ''}`)])) : null,
    change);
}

const asPercent = (value) => `${Math.round(value)}%`;

/** The curves of the GPUs of a running job, from their history; gaps where it did not have them. */
function liveTracks(job, past) {
  const step = past.step_s * 1000, from = Date.parse(past.from), ran = spansOf(job, Date.now()).filter((span) => span.kind === 'ran');
  const isOwn = (at) => ran.some((span) => at + step > span.from && at < span.to);
  const series = (member, scale = 1) => past.gpus.slice(0, GPUS_DRAWN).map((gpu) => ({ label: `${gpu.node}:${gpu.index}`, moments: gpu[member].map((_, i) => from + (i + 0.5) * step),
    values: gpu[member].map((value, i) => (value === null || !isOwn(from + i * step) ? null : value / scale)) }));
  const max = niceMax(Math.max(100, ...past.gpus.flatMap((gpu) => gpu.power_w.map((value) => value ?? 0))));
  return [{ title: 'GPU load', series: series('utilization'), max: 100, format: asPercent }, { title: 'GPU memory', series: series('memory'), max: 100, format: asPercent },
    { title: 'Power', series: series('power_w', max), max, format: (value) => `${Math.round(value)} W` }];
}

/** The curves that the record of an ended job has, of all its GPUs together. */
function endedTracks(job) {
  const rows = job.usage?.timeline ?? [], step = job.usage?.bucket_seconds * 1000, spans = spansOf(job, Date.parse(job.ended_at)).filter((span) => span.to > Date.parse(job.started_at));
  const moments = rows.map((_, i) => momentOf(spans, (i + 0.5) * step)); // nothing is sampled while it is parked
  const known = (value) => (isKnown(value) ? value / 100 : null);
  return rows.length ? ['GPU load', 'GPU memory', 'Power'].map((title, i) => ({ title, max: 100, format: asPercent, series: [{ label: 'of all its GPUs', moments, values: rows.map((row) => known(row[i])) }] })) : [];
}

/** The use of its GPUs and its events on one axis: from its start, or what is kept of that, to its end, or now. */
function charts(job, past, width) {
  if (!job.started_at) return [];
  const isRunning = job.state === 'running', tracks = isRunning ? (past?.gpus.length ? liveTracks(job, past) : []) : isOpen(job) ? [] : endedTracks(job);
  if (!tracks.length) return [];
  const to = isRunning ? Date.now() : Date.parse(job.ended_at), from = Math.max(Date.parse(job.started_at), to - PAST_S * 1000);
  return section('Use and events', timeTracks({ title: isRunning ? 'While it runs' : 'Over its run', from, to, tracks, width,
    events: (job.events ?? []).map((event) => ({ at: Date.parse(event.at), text: event.type })), parked: spansOf(job, to).filter((span) => span.kind === 'parked') }));
}

const average = (usage) => `busy ${percent(usage.utilization)} of the time on average, at most ${percent(usage.utilization_peak)}${isKnown(usage.gpu_memory_peak_bytes) ? `, with up to ${bytes(usage.gpu_memory_peak_bytes)} of ${bytes(usage.gpu_memory_bytes)} in use` : ''}`;

/** An ended job in sentences, as `mgpu postmortem` tells it. */
function postMortem(job) {
  const usage = job.usage;
  const sentences = [
    elementsOf(job) ? `Of its ${plural(job.elements.all, 'element')}, ${elementsOf(job)}.` : job.started_at ? `It waited ${duration(job.wait_seconds)}, then ran for ${duration(job.run_seconds)} on ${grantText(job)}.` : `It waited ${duration(job.wait_seconds)} and never ran.`,
    `It ended at ${moment(job.ended_at)}${elementsOf(job) ? '' : `: ${outcome(job)}`}${job.message ? ` (${job.message})` : ''}.`,
    usage?.fault ? `The driver reported: ${usage.fault}.` : null,
    isKnown(usage?.utilization) ? `Its GPUs were ${average(usage)}.` : null,
    usage?.idle_gpu_seconds >= 1 ? `GPU time allocated but not used: ${duration(usage.idle_gpu_seconds)}.` : null,
    job.cause,
  ].filter(Boolean);
  return section('Post-mortem', h('p', null, sentences.join(' ')), job.advice ? h('p', { class: 'hint' }, job.advice) : null);
}

const eventText = (event) => [event.message, event.ended_by, event.exit_code ? `exit ${event.exit_code}` : null, event.reason, event.user ? `by ${event.user}` : null, event.cause,
  event.granted?.length ? `GPUs ${event.granted.map((gpu) => `${gpu.node ?? event.node}:${gpu.index}`).join(', ')}` : null].filter(Boolean).join(', ');

/** The elements of an array that are separate jobs, in their order, each a link to its page. */
function elementPanel(job) {
  const ends = new Map();
  for (const event of job.events ?? []) if (event.element) ends.set(event.array_index, event); // the last one is its end
  if (!ends.size) return [];
  const link = ([index, event]) => {
    const name = `${job.id}.${index}`, isEnded = event.type === 'member', isGood = isEnded && event.ended_by === 'exit' && !event.exit_code;
    const end = !isEnded ? '' : isGood ? ' ✓' : event.ended_by === 'exit' ? ` exit ${event.exit_code}` : ` ${endWords(event.ended_by)}`;
    return h('li', null, h('a', { href: `#/job/${event.element}` }, name), h('span', { class: isEnded && !isGood ? 'bad' : 'quiet' }, end));
  };
  return section('Elements', h('ul', { class: 'elements' }, [...ends].sort((a, b) => a[0] - b[0]).map(link)));
}

function eventList(job) {
  return section('Events', scrollArea('Events of this job', h('table', { class: 'events' }, h('caption', { class: 'unseen' }, 'Events of this job'), h('thead', null, h('tr', null, [['Time', 'num'], ['Event', ''], ['Details', '']].map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))), h('tbody', null,
    (job.events ?? []).filter((event) => !event.element).map((event) => h('tr', null, h('td', { class: 'num' }, h('time', { datetime: event.at, title: fullMoment(event.at) }, exactTime(event.at))),
      h('th', { scope: 'row' }, event.type), h('td', null, eventText(event))))))));
}

function commandText(job) {
  return section('Command', h('pre', { class: 'command' }, job.argv ? job.argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ') : job.command));
}

export function mount(root, number) {
  const head = h('div', { class: 'jobhead' }), body = h('div', { class: 'two' }), logPlace = h('div'), chartPlace = h('div'), whyPlace = h('div'), eventPlace = h('div'), elementPlace = h('div');
  const factPlace = h('div');
  body.append(h('div', { class: 'wide' }, whyPlace, elementPlace, logPlace, chartPlace), h('div', { class: 'side' }, factPlace, eventPlace));
  root.append(head, body);
  let job = null, why = null, past = null, problem = null, logs = [], fetchedAt = 0, isBusy = false, isClosed = false;

  async function fetchJob() {
    isBusy = true;
    try {
      job = await get(`jobs/${number}`);
      why = waits(job) ? await get(`jobs/${number}/why`) : null;
      const age = Math.min(PAST_S, (Date.now() - Date.parse(job.started_at)) / 1000);
      if (job.state === 'running' && job.granted.length) past = await fetchPast(Math.max(60, age));
      problem = null;
    } catch (error) {
      problem = error;
    }
    isBusy = false;
    if (!isClosed) drawAll();
  }

  async function fetchPast(age) {
    const step = age <= 590 ? Math.min(59, Math.max(1, Math.ceil(age / CHART_POINTS))) : 60 * Math.ceil(age / 60 / CHART_POINTS);
    const answers = await Promise.all(job.granted.slice(0, GPUS_DRAWN).map((gpu) => get(`gpus/history?gpu=${encodeURIComponent(gpu.uuid)}&since=${Math.ceil(age)}&step=${step}`)));
    return { ...answers[0], gpus: answers.flatMap((answer) => answer.gpus) };
  }

  function drawLog() {
    for (const log of logs) log.draw();
    const hasOutput = mayRead(job) && (job.started_at || job.attempt > 0) && job.ended_by !== 'start_failed';
    if (hasOutput && logs.length === 0) {
      logs = logsOf(job).map((log) => logView(number, log, () => job));
      logPlace.replaceChildren(...logs.map((log) => section(log.title, log.node)));
    } else if (job.started_at && logs.length === 0 && !mayRead(job)) {
      redraw(logPlace, 'private', () => section('Output', h('p', { class: 'empty' }, `Only ${job.user} can read it.`)));
    }
  }

  function drawAll() {
    if (problem && !job) {
      redraw(head, problem.message, () => [h('h1', null, `Job ${number}`), h('p', { class: 'bad' }, problem.message)]);
      return;
    }
    if (!job) return;
    head.dataset.job = job.id;
    redraw(head, [job.state, job.array_left, job.name, job.hold, job.park, job.progress, job.idle, state.who, outcome(job)], () => [
      h('h1', null, h('span', { class: 'quiet' }, numberOf(job)), ' ', job.name), stateBadge(job.state, isSplitUp(job) ? 'all elements have started' : isOpen(job) ? undefined : outcome(job)), progressBar(job) ?? '',
      h('div', { class: 'buttons' }, buttons(job))]);
    redraw(factPlace, [job, state.who?.uid], () => [section('Request and use', h('dl', { class: 'facts' }, facts(job).map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))))), commandText(job)]);
    redraw(whyPlace, [why, isOpen(job) || job], () => (why ? whyPanel(job, why) : isOpen(job) ? [] : postMortem(job)));
    redraw(chartPlace, [past, job.state, job.events?.length, isOpen(job) ? null : job.usage?.timeline, chartPlace.clientWidth], () => charts(job, past, chartPlace.clientWidth));
    redraw(elementPlace, job.events, () => elementPanel(job));
    redraw(eventPlace, job.events, () => eventList(job));
    drawLog();
  }

  addEventListener('resize', drawAll);
  const endWatch = watchEvents((event) => {
    if (event.job === job?.id) fetchedAt = 0;
  });

  return {
    draw() {
      if (isBusy || Date.now() - fetchedAt < (job && !isOpen(job) ? 10 * FETCH_MS : FETCH_MS)) return;
      fetchedAt = Date.now();
      fetchJob();
    },
    close() {
      removeEventListener('resize', drawAll);
      isClosed = true;
      endWatch();
      for (const log of logs) log.close();
    },
    job: () => job,
    keys: { f: () => { for (const log of logs) log.follow(); } },
  };
}
