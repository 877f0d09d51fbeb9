// SPDX-License-Identifier: MIT
// Users and groups: what they run, their shares, their limits.
import { get } from './api.js';
import { meter } from './chart.js';
import { h, redraw } from './dom.js';
import { gpuHours, percent } from './format.js';
import { state } from './live.js';
import { scrollArea, section, userName } from './parts.js';

const FETCH_MS = 5000;

const TURN = 'Turn, from 1 to 0, orders waiting jobs: users who have recently used less than their share have a higher turn, and their jobs start first. Share: the part of the GPUs to which they are entitled. Recent use decays over time.';

const limit = (value, used) => (value === null ? String(used) : `${used} / ${value}`);

function rowOf(account, total) {
  const name = account.user ?? account.group;
  return h('tr', { class: account.uid === state.who?.uid && account.user ? 'mine' : '' }, h('th', { scope: 'row' }, account.user ? userName(name) : name),
    h('td', { class: 'num' }, limit(account.limits.running, account.running)), h('td', { class: 'num' }, String(account.queued)), h('td', { class: 'num' }, limit(account.limits.gpus, Number(account.gpus.toFixed(2)))),
    h('td', null, meter(total ? account.gpu_seconds / total : 0, 'load', `${gpuHours(account.gpu_seconds)} h`, 'recent use')),
    h('td', { class: 'num' }, percent(account.share)), h('td', { class: 'num' }, account.factor.toFixed(2)),
    h('td', { class: 'num' }, account.limits.gpu_seconds === null ? '–' : `${gpuHours(account.limits.gpu_seconds)} h`));
}

function tableOf(title, accounts, emptyText) {
  const total = accounts.reduce((sum, account) => sum + account.gpu_seconds, 0);
  const heads = [[title.slice(0, -1), ''], ['Running', 'num'], ['Queued', 'num'], ['GPUs', 'num'], ['Recent use', ''], ['Share', 'num'], ['Turn', 'num'], ['Quota', 'num']];
  return section(title, accounts.length ? scrollArea(`${title}, table`, h('table', null, h('caption', { class: 'unseen' }, title), h('thead', null, h('tr', null, heads.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))),
    h('tbody', null, accounts.map((account) => rowOf(account, total))))) : h('p', { class: 'empty' }, emptyText));
}

export function mount(root) {
  const place = h('div', { class: 'lists' });
  let accounts = null, fetchedAt = 0;
  root.append(h('h1', { class: 'unseen' }, 'Users'), place);
  const isOwn = (account) => account.user !== null && account.uid === state.who?.uid;

  async function fetchAll() {
    fetchedAt = Date.now();
    accounts = (await get('users')).users.sort((a, b) => isOwn(b) - isOwn(a) || b.gpu_seconds - a.gpu_seconds);
    draw();
  }

  function draw() {
    if (Date.now() - fetchedAt > FETCH_MS && state.isOnline) fetchAll().catch(() => {});
    if (!accounts) return;
    redraw(place, [accounts, state.who?.uid], () => [tableOf('Users', accounts.filter((account) => account.user !== null), 'No user has used a GPU recently.'),
      tableOf('Groups', accounts.filter((account) => account.group !== null), 'No group has its own share or limit.'), h('p', { class: 'quiet legend' }, TURN)]);
  }

  return { draw };
}
