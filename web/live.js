// SPDX-License-Identifier: MIT
// What the page knows, kept current. The list of jobs is fetched once per connection; then /events names the jobs that
// have changed, and only these are fetched again, together, at most once a second. Whatever moves without an event (places
// in the queue, expected starts) is fetched every ten seconds while something happens, and GPUs every two; less often when
// nobody has touched the page for a minute. After an outage, everything is fetched anew. A hidden page holds no connection: browsers allow six per host, for all tabs together.
import { get, open } from './api.js';

const BATCH_MS = 1000;
const CALM_MS = 10000;
const GPUS_MS = 2000;
const GPUS_ALONE_MS = 5000; // when nobody has touched the page for a minute
const ALONE_MS = 60000;
const SILENCE_MS = 40000; // mgpud sends a comment line every 15 s
const OPEN_STATES = 'queued,starting,running,stopping';
const ENDED_SHOWN = 40;

export const state = {
  who: null, // GET /whoami
  jobs: new Map(),
  news: 0, // grows with each change of `jobs`
  gpus: [],
  nodes: [],
  hasFirst: false, // enough for a first picture is there
  isComplete: false, // all lists are there
  isOnline: false,
  isOutdated: false, // mgpud has another version of this page
  problem: null,
  lostAt: 0, // when the connection was lost, in ms; 0: there has been none
  controllers: [], // addresses of all, when there are several
};

const listeners = new Set();
let scheduled = false;

/** Calls `listener` in the next frame after something has changed. Returns the function that ends this. */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function changed() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const listener of [...listeners]) listener();
  });
}

export const isOpen = (job) => OPEN_STATES.includes(job.state);

/** True of an array all of whose elements are separate jobs. */
export const isSplitUp = (job) => job.state === 'queued' && job.array_left === '';

export const waits = (job) => job.state === 'queued' && !isSplitUp(job);
export const isMine = (job) => state.who?.uid === job.uid;

/** May this person change the job? mgpud decides; this only hides what it would refuse. */
export const mayControl = (job) => isMine(job) || ['operator', 'admin'].includes(state.who?.role);
export const mayRead = (job) => isMine(job) || state.who?.role === 'admin';
export const mayManage = () => ['operator', 'admin'].includes(state.who?.role);

const eventListeners = new Set();

/** Calls `listener` with each event of mgpud. Returns the function that ends this. */
export function watchEvents(listener) {
  eventListeners.add(listener);
  return () => eventListeners.delete(listener);
}

// --- lists ---

function put(jobs) {
  state.news++;
  for (const job of jobs) state.jobs.set(job.id, job);
  const ended = [...state.jobs.values()].filter((job) => !isOpen(job)).sort((a, b) => (a.ended_at < b.ended_at ? 1 : -1));
  for (const job of ended.slice(ENDED_SHOWN * 2)) state.jobs.delete(job.id);
}

async function fetchOpen(options) {
  const list = (await get(`jobs?sparse=1&state=${OPEN_STATES}&limit=10000`, options)).jobs;
  const present = new Set(list.map((job) => job.id));
  const gone = [...state.jobs.values()].filter((job) => isOpen(job) && !present.has(job.id)).map((job) => job.id);
  for (const id of gone) state.jobs.delete(id);
  put(list);
  for (const id of gone) dirty.add(id);
  if (gone.length) scheduleBatch();
}

/** The next frame has been painted. */
const painted = () => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });

/** The first picture, requested together with the stream of events. What changes until that is open is in fetchAll. */
async function fetchFirst(signal) {
  const options = { signal };
  const [who, { gpus }, { nodes }, { jobs }] = await Promise.all([get('whoami', options), get('gpus', options), get('nodes', options),
    get(`jobs?sparse=1&quick=1&state=${OPEN_STATES}&limit=10000`, options)]);
  Object.assign(state, { who, gpus, nodes, hasFirst: true });
  put(jobs);
  changed();
  await painted();
}

async function fetchAll(signal) {
  const options = { signal };
  const ended = get(`jobs?sparse=1&state=done,failed,cancelled&limit=${ENDED_SHOWN}`, options);
  const [who, { gpus }, { nodes }] = await Promise.all([get('whoami', options), get('gpus', options), get('nodes', options), fetchOpen(options)]);
  if (state.who && state.who.page !== who.page) state.isOutdated = true;
  Object.assign(state, { who, gpus, nodes, isComplete: true });
  put((await ended).jobs);
  changed();
}

// --- what has changed ---

const dirty = new Set();
let batchTimer = null;
let isQueueOld = false;

function scheduleBatch() {
  batchTimer ??= setTimeout(fetchBatch, BATCH_MS);
}

async function fetchBatch() {
  const ids = [...dirty].slice(0, 200);
  batchTimer = null;
  ids.forEach((id) => dirty.delete(id));
  if (!ids.length || !state.isOnline) return;
  try {
    const [{ jobs }, { gpus }] = await Promise.all([get(`jobs?sparse=1&ids=${ids.join(',')}`), get('gpus')]);
    state.gpus = gpus;
    const found = new Set(jobs.map((job) => job.id));
    for (const id of ids) if (!found.has(id)) state.jobs.delete(id);
    put(jobs);
    isQueueOld = true;
    changed();
  } catch {
    ids.forEach((id) => dirty.add(id)); // the connection tells what is wrong, and everything is fetched then
  }
  if (dirty.size) scheduleBatch();
}

async function fetchNodes() {
  const answer = await get('nodes');
  state.nodes = answer.nodes;
  changed();
}

function take(event) {
  if (event.job) {
    dirty.add(event.job);
    if (event.element) dirty.add(event.element);
    scheduleBatch();
  } else {
    fetchNodes().catch(() => {});
    isQueueOld = true;
  }
  for (const listener of [...eventListeners]) listener(event);
}

// --- the stream ---

/** Reads server-sent events from a response; a stream that falls silent is cut. */
async function readEvents(response, controller) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const silence = setTimeout(() => controller.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      if (/^event: reset$/m.test(block)) return;
      const found = /^data: (.*)$/m.exec(block);
      if (found) take(JSON.parse(found[1]));
    }
  }
}

let controller = null;
let retryMs = 0;
let wakeUp = () => {};

/** The same view of the page of another controller. A login is good for one of them. */
export const pageAt = (address) => `${address.split('#')[0].replace(/^(?!https?:)/, `${location.protocol}//`)}/${location.hash}`;

/** With several controllers, where the others are: one of them leads when this one is away. */
async function learnControllers() {
  try {
    const { controllers } = await get('cluster');
    state.controllers = (controllers ?? []).map((one) => one.api).filter(Boolean);
  } catch {
    // an older mgpud
  }
}

async function connect() {
  controller = new AbortController();
  try {
    const stream = open('api/v1/events', { signal: controller.signal });
    const [response] = await Promise.all([stream, state.hasFirst ? null : fetchFirst(controller.signal)]);
    dirty.clear();
    await fetchAll(controller.signal);
    state.isOnline = true;
    state.problem = null;
    learnControllers();
    retryMs = 0;
    changed();
    await readEvents(response, controller);
  } catch (error) {
    if (!document.hidden) state.problem = error;
    if (error.code === 'standby' && error.leader) location.replace(pageAt(error.leader));
  } finally {
    controller.abort();
    if (state.isOnline) state.lostAt = Date.now();
    state.isOnline = false;
  }
  changed();
}

const visible = () => new Promise((resolve) => {
  if (!document.hidden) resolve();
  else document.addEventListener('visibilitychange', resolve, { once: true });
});

/** Follows mgpud for as long as the page is open. */
export async function follow() {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) controller?.abort();
    wakeUp();
  });
  poll();
  for (;;) {
    await visible();
    await connect();
    if (document.hidden) continue;
    retryMs = Math.min(Math.max(retryMs * 2, 500), 10000);
    await new Promise((resolve) => {
      wakeUp = resolve;
      setTimeout(resolve, retryMs);
    });
  }
}

/** Connects again at once, as somebody who has just logged in or out. */
export function reconnect() {
  controller?.abort();
  retryMs = 0;
  wakeUp();
}

let polledAt = 0;
let touchedAt = Date.now();

async function poll() {
  for (const kind of ['pointermove', 'keydown', 'wheel', 'hashchange']) addEventListener(kind, () => { touchedAt = Date.now(); }, { passive: true });
  for (;;) {
    const isAlone = Date.now() - touchedAt >= ALONE_MS;
    await new Promise((resolve) => setTimeout(resolve, isAlone ? GPUS_ALONE_MS : GPUS_MS));
    if (document.hidden || !state.isOnline) continue;
    try {
      state.gpus = (await get('gpus')).gpus;
      if (Date.now() - polledAt >= CALM_MS) {
        polledAt = Date.now();
        const isRunning = [...state.jobs.values()].some((job) => job.state === 'running');
        if (isQueueOld) await fetchOpen();
        else if (isRunning) put((await get('jobs?sparse=1&state=starting,running,stopping')).jobs);
        isQueueOld = false;
      }
      changed();
    } catch {
      // the stream notices an mgpud that is away
    }
  }
}
