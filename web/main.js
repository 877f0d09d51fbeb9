// SPDX-License-Identifier: MIT
// The page: the login with a one-time address, the views, the keys and the themes.
import { ask, cancel, hold, replaceView, requeue, say, sayProblem, setPriority, tell } from './actions.js';
import { get, post, remove } from './api.js';
import { h, redraw, setText } from './dom.js';
import { exactTime } from './format.js';
import { follow, mayControl, pageAt, reconnect, state, watch } from './live.js';
import * as history from './history.js';
import * as job from './job.js';
import * as nodes from './nodes.js';
import * as now from './now.js';
import * as submit from './submit.js';
import * as timeline from './timeline.js';
import * as users from './users.js';

// Name in the address, title, key, view. Those with a key are in the bar at the top.
const VIEWS = [
  ['now', 'Now', '1', now],
  ['nodes', 'Nodes', '4', nodes],
  ['users', 'Users', '5', users],
  ['timeline', 'Timeline', '6', timeline],
  ['history', 'History', '7', history],
  ['submit', 'New job', 'S', submit],
  ['job', 'Job', null, job],
];

const $ = (id) => document.getElementById(id);
let view = null;
let depth = 0; // views before this one, to which the way back leads

// --- views ---

function show() {
  const [, name = 'now', argument] = /^#\/([a-z]+)(?:\/([0-9.]+))?$/.exec(location.hash) ?? [];
  const row = VIEWS.find((one) => one[0] === name) ?? VIEWS[0];
  depth = window.history.state?.depth ?? (view ? depth + 1 : 0);
  window.history.replaceState({ depth }, '');
  view?.close?.();
  const root = $('view');
  root.replaceChildren();
  view = row[3].mount(root, argument);
  document.title = argument ? `${row[1]} ${argument} – mgpu` : `${row[1]} – mgpu`;
  for (const link of $('nav').children) {
    if (link.dataset.view === row[0]) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  view.draw();
  scrollTo(0, 0);
}

function drawFrame() {
  const { who, isOnline, problem } = state;
  const title = who?.by === 'session' ? `logged in until ${new Date(who.expires_at).toLocaleString()}` : 'identified by the kernel';
  redraw($('who'), [who, isOnline], () => (who?.user ? [h('span', { title }, who.user, who.role === 'user' ? null : h('small', null, ` ${who.role}`)),
    who.by === 'session' ? h('button', { type: 'button', class: 'quiet', onclick: logOut }, 'Log out') : null] : []));
  const isKept = who?.user === null || problem?.status === 401;
  setText($('link'), isOnline ? '● live' : isKept ? '' : '◌ connecting');
  $('link').className = `link ${isOnline ? 'on' : 'off'}`;
  $('new-job').hidden = !who?.user || who.role === 'viewer';
  $('view').hidden = isKept && !state.isComplete;
  drawBanner(isKept);
}

function drawBanner(isKept) {
  const { isOnline, isOutdated, problem, isComplete } = state;
  let text = null;
  if (isKept) text = 'mgpud cannot identify you. Run `mgpu web` on the machine of mgpud, and open the address that it prints.';
  else if (isOutdated) text = 'mgpud has a newer version of this page. ';
  else if (!isOnline && problem) text = isComplete ? `No connection to mgpud since ${exactTime(state.lostAt)}: this page shows the state at that time. Running jobs are not affected. The page reconnects automatically. ${problem.status ? problem.message : ''}` : `No connection to mgpud. ${problem.message}`;
  const banner = $('banner');
  banner.hidden = !text;
  const others = isOnline || isKept ? [] : state.controllers.filter((address) => address !== location.host);
  redraw(banner, [text, isOutdated, others.join()], () => [text, others.length ? ' Other controllers: ' : null,
    ...others.map((address) => h('a', { href: pageAt(address) }, `${address} `)), isOutdated && !isKept ? h('button', { type: 'button', onclick: () => location.reload() }, 'Reload') : null]);
}

// --- who ---

/** `#login=SECRET` from `mgpu web`: the secret leaves the address before anything else, and is good once. */
async function logIn() {
  const found = /^#login=([A-Za-z0-9_]+)$/.exec(location.hash);
  if (!found) return;
  window.history.replaceState(window.history.state, '', '#/now');
  try {
    const before = await get('whoami');
    const { user } = await post('sessions', { login: found[1] });
    if (before.user && before.user !== user) await confirmUser(before.user, user);
  } catch (error) {
    sayProblem(error);
  }
}

/** The address may have come from another user, by a link: nobody should act as another user unknowingly. */
async function confirmUser(before, user) {
  const isMeant = await ask({ title: `You are now logged in as ${user}`, text: `You were ${before} on this page before. Jobs that you submit now belong to ${user}. Did another user send you the address?`, action: `Stay ${user}` });
  if (!isMeant) await remove('sessions');
}

async function logOut() {
  try {
    await remove('sessions');
    say('Logged out');
  } catch (error) {
    sayProblem(error);
  }
  reconnect();
}

// --- keys ---

const chosenJob = () => {
  const row = document.activeElement?.closest?.('[data-job]') ?? document.querySelector('#view > [data-job]');
  return row ? state.jobs.get(Number(row.dataset.job)) ?? view?.job?.() : null;
};

function move(step) {
  const links = [...document.querySelectorAll('#view .row-link')];
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at < 0 ? 0 : at + step))]?.focus();
}

const KEYS = [
  ['j ↓', ['j', 'ArrowDown'], 'down one row', () => move(1)],
  ['k ↑', ['k', 'ArrowUp'], 'up one row', () => move(-1)],
  ['Enter', [], 'open the job'],
  ['c', ['c'], 'cancel the job; asks first', () => onJob(cancel)],
  ['H', ['H'], 'hold or release the job', () => onJob(hold)],
  ['p', ['p'], 'change its priority', () => onJob(setPriority)],
  ['r', ['r'], 'end and requeue the job; asks first', () => onJob(requeue)],
  ['/', ['/'], 'filter jobs', () => view?.keys?.['/']?.()],
  ['m', ['m'], 'only my jobs, or all', () => view?.keys?.m?.()],
  ['f', ['f'], 'follow the end of the log', () => view?.keys?.f?.()],
  ['[ ]', ['[', ']'], 'a shorter, a longer time', (key) => view?.keys?.[key]?.()],
  ['Esc', ['Escape'], 'back', () => goBack()],
  ...VIEWS.filter((row) => row[2]).map(([name, title, key]) => [key, [key], title.toLowerCase(), () => { location.hash = `#/${name}`; }]),
  ['t', ['t'], 'light or dark', () => turnTheme()],
  ['?', ['?'], 'these keys', () => showKeys()],
];

/** To the view before, and from the first one to the overview: never out of the page. */
function goBack() {
  if (depth > 0) window.history.back();
  else if (!/^#\/now$|^$/.test(location.hash)) replaceView('#/now');
  else document.activeElement?.blur();
}

function onJob(act) {
  const chosen = chosenJob();
  if (!chosen) say('Choose a job first: j and k move through the rows');
  else if (!mayControl(chosen)) say(`Job ${chosen.id} belongs to ${chosen.user}`, true);
  else act(chosen);
}

function onKey(event) {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey || $('dialog').open) return;
  if (isTyping && event.key === 'Escape') event.target.blur();
  if (isTyping) return;
  const row = KEYS.find((one) => one[1].includes(event.key));
  if (!row || !row[3]) return;
  event.preventDefault();
  row[3](event.key);
}

const showKeys = () => tell('Keys', h('dl', { class: 'keys' }, KEYS.map(([name, , text]) => [h('dt', null, h('kbd', null, name)), h('dd', null, text)])));

// --- themes ---

function turnTheme() {
  const isDark = getComputedStyle(document.documentElement).colorScheme.includes('dark') && !document.documentElement.dataset.theme
    ? matchMedia('(prefers-color-scheme: dark)').matches : document.documentElement.dataset.theme === 'dark';
  setTheme(isDark ? 'light' : 'dark');
}

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  try {
    if (name) localStorage.setItem('mgpu-theme', name);
  } catch {
    // storage is refused: the choice lasts as long as the page
  }
}

// --- start ---

try {
  setTheme(localStorage.getItem('mgpu-theme'));
} catch {
  // as above
}
$('nav').append(...VIEWS.filter((row) => row[2] && row[0] !== 'submit').map(([name, title, key]) => h('a', { href: `#/${name}`, 'data-view': name, title: `key ${key}` }, title)), h('a', { href: 'page/README.html' }, 'Documents'));
$('theme').addEventListener('click', turnTheme);
$('help').addEventListener('click', showKeys);
addEventListener('keydown', onKey);
await logIn();
follow();
await null; // its requests leave before the first layout
watch(() => {
  drawFrame();
  view?.draw();
});
addEventListener('hashchange', () => (location.hash.startsWith('#login=') ? logIn().then(reconnect) : show()));
show();
drawFrame();
