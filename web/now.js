// SPDX-License-Identifier: MIT
// The first view: the GPUs with their owners and the past ten minutes, the running jobs, the queue and what has just ended.
import { get } from './api.js';
import { meter, setMeter, setSparkline, sparkline } from './chart.js';
import { h, redraw, setText, syncRows } from './dom.js';
import { duration, numberOf, percent, secondsSince } from './format.js';
import { isMine, isOpen, state, waits } from './live.js';
import { jobRow, jobSignature, jobTable, stateBadge, userName } from './parts.js';

const PAST_S = 600;
const STEP_S = 10;
const PAST_MS = 30000; // between two requests for the past
const ROWS_SHOWN = 100;
const ROW_MIN = 20; // pixels: a list of more rows than fit the window hides all below it
const LISTS_MS = 10000; // between two looks at lists without news, in which times grow
const MANY_GPUS = 24; // above, the cards are smaller
const CARD_MIN = 144, CARD_GAP = 6; // pixels
const QUEUE_ROWS_SEEN = 4; // of the queue that running jobs leave room for in the window
const RUNNING_MIN = 5;
const ROW_HEIGHT = 28, QUEUE_ROW_HEIGHT = 46, LIST_FRAME = 66, MORE_HEIGHT = 36; // pixels: a row, a heading with the head of its list, the button for more
const NARROW = 640; // pixels: below, rows of jobs are cards, and GPUs are rows

const RUNNING = ['id', 'user', 'name', 'gpus', 'where', 'load', 'progress', 'runs', 'until'];
const QUEUE = ['id', 'user', 'name', 'gpus', 'position', 'waits', 'starts', 'why'];
const ENDED = ['id', 'user', 'name', 'gpus', 'outcome', 'ran', 'ended'];

const IN_USE = ['used', 'shared'];

function figures() {
  const jobs = [...state.jobs.values()];
  const waiting = jobs.filter(waits), running = jobs.filter((job) => isOpen(job) && job.state !== 'queued').length;
  const longest = Math.max(0, ...waiting.map((job) => secondsSince(job.submitted_at)));
  const used = state.gpus.filter((gpu) => IN_USE.includes(gpu.state));
  const measured = state.gpus.filter((gpu) => gpu.utilization !== null);
  const load = measured.reduce((sum, gpu) => sum + gpu.utilization, 0) / Math.max(1, measured.length);
  const wasted = state.gpus.filter((gpu) => gpu.wasted).length;
  const external = state.gpus.filter((gpu) => gpu.processes.some((process) => process.job === null)).length;
  const broken = state.gpus.filter((gpu) => !IN_USE.includes(gpu.state) && gpu.state !== 'free').length;
  const away = state.nodes.filter((node) => node.state !== 'up').length;
  return [
    [`${used.length} / ${state.gpus.length}`, 'GPUs in use', ''],
    [measured.length ? percent(load) : '–', 'mean load', ''],
    [String(running), running === 1 ? 'job running' : 'jobs running', ''],
    [String(waiting.length), waiting.length ? `waiting, longest ${duration(longest)}` : 'waiting', ''],
    [String(wasted), wasted === 1 ? 'GPU allocated but idle' : 'GPUs allocated but idle', wasted ? 'warn' : 'none'],
    [String(external), 'with external processes', external ? 'warn' : 'none'],
    [String(broken), 'out of service', broken ? 'bad' : 'none'],
    ...(state.nodes.length > 1 ? [[`${state.nodes.length - away} / ${state.nodes.length}`, 'nodes up', away ? 'bad' : '']] : []),
  ];
}

function ownerOf(gpu) {
  if (gpu.jobs.length) {
    return gpu.jobs.slice(0, 3).map((job) => h('div', { class: 'owner' }, userName(job.user), ' ', h('a', { href: `#/job/${job.id}` }, `${numberOf(job)} ${job.name}`)));
  }
  const other = gpu.processes.find((process) => process.job === null);
  if (other) return h('div', { class: 'owner warn' }, `${other.user ?? 'unknown'}: ${other.command ?? other.pid} (external)`);
  return h('div', { class: 'owner quiet' }, gpu.reason ?? gpu.trouble ?? ' ');
}

/** The words by which people tell GPUs apart; the whole name is its title. */
const shortModel = (model) => (model ?? '').replace(/^(NVIDIA|AMD) /, '').replace(/^(GeForce|Instinct|Radeon) /, '');

/** The state, or what keeps jobs off a GPU that none has. */
const shownState = (gpu) => (gpu.state === 'free' && gpu.policy !== 'ignore' && gpu.processes.some((process) => process.job === null) ? 'external' : gpu.state);

function memoryOf(gpu) {
  const used = gpu.memory_used_bytes, all = gpu.memory_bytes;
  return used === null ? [0, '–'] : [used / all, `${(used / 2 ** 30).toFixed(1)} / ${(all / 2 ** 30).toFixed(0)} GiB`];
}

const linesOf = (past) => [{ name: 'memory', values: past?.memory ?? [] }, { name: 'load', values: past?.utilization ?? [] }];

/** What moves all the time is written into the card; what else it shows is in its signature. */
function updateCard(card, gpu, past) {
  const [load, memory] = card.querySelectorAll('.meter'), [temperature, power] = card.querySelectorAll('footer span');
  setMeter(load, gpu.utilization, percent(gpu.utilization), 'load');
  setMeter(memory, ...memoryOf(gpu), 'memory');
  setText(temperature, gpu.temperature_c === null ? '' : `${gpu.temperature_c} °C`);
  setText(power, gpu.power_w === null ? '' : `${Math.round(gpu.power_w)} W`);
  if (card.pastAt === past?.at) return;
  card.pastAt = past?.at;
  setSparkline(card.querySelector('.spark'), linesOf(past));
}

function gpuCard(gpu) {
  const name = `${gpu.node}:${gpu.index}`;
  const idle = gpu.idle_s >= 60 ? h('span', { class: `idle ${gpu.wasted ? 'warn' : 'quiet'}` }, `idle ${duration(gpu.idle_s)}`) : null;
  return h('article', { class: `gpu gpu-${gpu.state} ${gpu.wasted ? 'wasted' : ''}`, 'aria-label': `GPU ${name}, ${shownState(gpu)}` },
    h('header', null, h('b', null, String(gpu.index)), h('span', { class: 'model', title: `${gpu.model}, ${gpu.uuid}` }, shortModel(gpu.model)), idle, stateBadge(shownState(gpu))),
    ownerOf(gpu),
    meter(0, 'load', '', 'load'), meter(0, 'memory', '', 'memory'),
    sparkline(linesOf(null), `load and memory of GPU ${name} in the last ten minutes`),
    h('footer', null, h('span'), h('span')));
}

const gpuSignature = (gpu) => [gpu.state, gpu.jobs, gpu.reason, gpu.trouble, gpu.wasted, Math.floor((gpu.idle_s ?? -1) / 60), gpu.processes.length];

/** The filter of the lists: words in number, user, name or state; "mine" alone are one's own. */
function matcher(text, mineOnly) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (job) => (!mineOnly || isMine(job)) && words.every((word) => {
    const [, isNot, rest] = /^(!?)(.*)$/.exec(word);
    const colon = { 'u:': job.user, 's:': job.state, 'n:': job.name }[rest.slice(0, 2)];
    const hit = colon === undefined ? `${job.id} ${numberOf(job)} ${job.user} ${job.name} ${job.state}`.toLowerCase().includes(rest) : colon.toLowerCase().includes(rest.slice(2));
    return hit !== Boolean(isNot);
  });
}

/** How many cards of GPUs are beside each other: as few rows as fit, each as long as the others. */
function columnsFor(count, width) {
  const most = Math.max(1, Math.floor((width + CARD_GAP) / (CARD_MIN + CARD_GAP)));
  return Math.ceil(count / Math.ceil(count / most));
}

function jobList(title, columns, emptyText) {
  const table = jobTable(columns, title);
  const heading = h('h2', null, title), count = h('span', { class: 'count' });
  const more = h('button', { type: 'button', class: 'more', hidden: true });
  const empty = h('p', { class: 'empty' }, emptyText);
  let shown = ROWS_SHOWN, isWhole = false;
  heading.append(' ', count);
  more.addEventListener('click', () => {
    shown = Infinity;
    isWhole = true;
    more.hidden = true;
    more.dispatchEvent(new CustomEvent('mgpu-redraw', { bubbles: true }));
  });
  return {
    node: h('section', { 'aria-label': title }, heading, table.node, empty, more),
    /** Shows these jobs, at first at most so many of them. */
    draw(jobs, isKnown, most = ROWS_SHOWN, isFiltered = false) {
      setText(empty, isFiltered ? `${title}: no jobs match the filter.` : emptyText);
      if (!isWhole) shown = most;
      const drawn = state.isComplete ? shown : Math.min(shown, Math.ceil(innerHeight / ROW_MIN));
      setText(count, jobs.length ? String(jobs.length) : '');
      syncRows(table.body, jobs.slice(0, drawn), (job) => job.id, jobSignature, (job) => jobRow(job, columns));
      table.node.hidden = !jobs.length;
      empty.hidden = jobs.length > 0 || !isKnown;
      more.hidden = jobs.length <= shown;
      setText(more, `Show all ${jobs.length}`);
    },
  };
}

export function mount(root) {
  const tiles = h('div', { class: 'tiles' });
  const gpus = h('div', { class: 'nodes' });
  const noGpus = h('p', { class: 'empty', hidden: true }, 'No GPUs were found: `mgpu doctor` shows why. Jobs without GPUs can run.');
  const filter = h('input', { type: 'search', class: 'filter', placeholder: 'Filter jobs: word u:ana s:queued !word', 'aria-label': 'Filter jobs', 'data-key': '/' });
  const mine = h('input', { type: 'checkbox', id: 'mine' });
  const running = jobList('Running', RUNNING, 'No jobs are running.');
  const queue = jobList('Queue', QUEUE, 'No jobs are waiting.');
  const ended = jobList('Ended', ENDED, 'No jobs have ended in the last hour.');
  const lists = h('div', { class: 'lists' }, running.node, queue.node, ended.node);
  let past = new Map(), fetchedAt = 0, drawnNews = null, drawnAt = 0, drawnLayout = null, width = null;
  root.append(h('h1', { class: 'unseen' }, 'Now'), tiles, noGpus, gpus, h('div', { class: 'bar' }, filter, h('label', { for: 'mine' }, mine, ' mine only')), lists);

  async function fetchPast() {
    if (Date.now() - fetchedAt < PAST_MS || !state.isOnline) return;
    fetchedAt = Date.now();
    const answer = await get(`gpus/history?since=${PAST_S}&step=${STEP_S}`);
    past = new Map(answer.gpus.map((gpu) => [gpu.uuid, { ...gpu, at: fetchedAt }]));
    draw();
  }

  /** Asked before anything is changed: else the browser lays the page out twice. Only a resize changes it, because there is always a scrollbar. */
  function placeWidth() {
    return width ??= gpus.clientWidth;
  }

  function drawGpus() {
    noGpus.hidden = state.gpus.length > 0 || !state.hasFirst;
    const nodes = [...new Set(state.gpus.map((gpu) => gpu.node))];
    syncRows(gpus, nodes, (node) => node, () => nodes.length > 1, (node) => h('section', { 'aria-label': `GPUs of ${node}` },
      nodes.length > 1 ? h('h2', null, node) : null, h('div', { class: 'gpus' })));
    nodes.forEach((node, i) => {
      const place = gpus.children[i].querySelector('.gpus'), own = state.gpus.filter((gpu) => gpu.node === node);
      place.classList.toggle('dense', state.gpus.length > MANY_GPUS);
      place.dataset.count = own.length;
      syncRows(place, own, (gpu) => gpu.uuid, gpuSignature, gpuCard);
      own.forEach((gpu, k) => updateCard(place.children[k], gpu, past.get(gpu.uuid)));
    });
    const laid = `${placeWidth()} ${nodes.length} ${state.gpus.length}`;
    if (laid === drawnLayout) return;
    drawnLayout = laid;
    layCards();
  }

  function layCards() {
    for (const place of gpus.querySelectorAll('.gpus')) place.style.setProperty('--columns', columnsFor(Number(place.dataset.count), placeWidth()));
  }

  /** Rows of running jobs that leave the beginning of the queue below them in the window. */
  function runningRows(queued) {
    if (!queued || queue.node.offsetLeft > running.node.offsetLeft) return ROWS_SHOWN;
    if (innerWidth <= NARROW) return RUNNING_MIN;
    const room = innerHeight - lists.offsetTop - 2 * LIST_FRAME - MORE_HEIGHT - QUEUE_ROW_HEIGHT * Math.min(queued, QUEUE_ROWS_SEEN);
    return Math.max(RUNNING_MIN, Math.floor(room / ROW_HEIGHT));
  }

  function drawLists() {
    drawnNews = state.news;
    drawnAt = Date.now();
    const jobs = [...state.jobs.values()].filter(matcher(filter.value, mine.checked));
    const waiting = jobs.filter(waits), isFiltered = Boolean(filter.value.trim()) || mine.checked;
    running.draw(jobs.filter((job) => isOpen(job) && job.state !== 'queued').sort((a, b) => a.id - b.id), state.hasFirst, runningRows(waiting.length), isFiltered);
    queue.draw(waiting.sort((a, b) => (a.position ?? 1e9) - (b.position ?? 1e9) || a.id - b.id), state.hasFirst, ROWS_SHOWN, isFiltered);
    ended.draw(jobs.filter((job) => !isOpen(job)).sort((a, b) => (a.ended_at < b.ended_at ? 1 : -1)), state.isComplete, ROWS_SHOWN, isFiltered);
  }

  function draw() {
    placeWidth();
    const now = figures();
    redraw(tiles, now, () => now.map(([value, label, name]) => h('div', { class: `tile ${name}` }, h('b', null, value), h('span', null, label))));
    drawGpus();
    if (drawnNews !== state.news || Date.now() - drawnAt >= LISTS_MS) drawLists();
    fetchPast().catch(() => {});
  }

  root.addEventListener('mgpu-redraw', drawLists);
  filter.addEventListener('input', drawLists);
  mine.addEventListener('change', drawLists);
  const onResize = () => {
    width = null;
    drawGpus();
    drawLists();
  };
  addEventListener('resize', onResize);
  return { draw, close: () => removeEventListener('resize', onResize), keys: { m: () => mine.click(), '/': () => filter.focus() } };
}
