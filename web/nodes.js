// SPDX-License-Identifier: MIT
// Nodes and the health of their GPUs: what is out of service and why, what runs beside mgpu, what is switched off.
import { toggleGpu, toggleNode } from './actions.js';
import { h, redraw } from './dom.js';
import { bytes, percent, plural } from './format.js';
import { mayManage, state } from './live.js';
import { scrollArea, stateBadge, time } from './parts.js';

function gpuRow(gpu) {
  const external = gpu.processes.filter((process) => process.job === null);
  const trouble = [gpu.reason, gpu.trouble, gpu.fault?.text, gpu.xid ? `Xid ${gpu.xid}` : null].filter(Boolean);
  const isPaused = ['paused', 'drained', 'released'].includes(gpu.state);
  return h('tr', null, h('th', { scope: 'row' }, String(gpu.index)), h('td', null, stateBadge(gpu.state)), h('td', { title: gpu.uuid }, gpu.model),
    h('td', { class: 'num' }, percent(gpu.utilization)), h('td', { class: 'num' }, `${bytes(gpu.memory_used_bytes)} / ${bytes(gpu.memory_bytes)}`),
    h('td', { class: 'num' }, gpu.temperature_c === null ? '–' : `${gpu.temperature_c} °C`), h('td', { class: 'num' }, gpu.power_w === null ? '–' : `${Math.round(gpu.power_w)} / ${gpu.power_limit_w === null ? '–' : Math.round(gpu.power_limit_w)} W`),
    h('td', { class: 'num' }, gpu.ecc_uncorrected === null ? '–' : `${gpu.ecc_corrected} / ${gpu.ecc_uncorrected}`),
    h('td', { class: 'why' }, trouble.length ? h('span', { class: 'bad' }, trouble.join('; ')) : null, external.map((process) => h('div', { class: 'warn' }, `${process.user ?? '?'}: ${process.command ?? ''} (pid ${process.pid}, ${bytes(process.memory_bytes)})`))),
    mayManage() ? h('td', null, h('button', { type: 'button', onclick: () => toggleGpu(gpu) }, isPaused ? 'Resume' : 'Pause')) : null);
}

const HEADS = [['GPU', ''], ['State', ''], ['Model', ''], ['Load', 'num'], ['Memory', 'num'], ['Temperature', 'num'], ['Power', 'num'], ['ECC corr./uncorr.', 'num'], ['Problems, external processes', '']];

function featureList(node) {
  const off = node.features.filter((feature) => !feature.on);
  return h('details', null, h('summary', null, off.length ? `${off.length} of ${node.features.length} features are off` : `All ${node.features.length} features are on`),
    h('dl', { class: 'facts' }, node.features.map((feature) => h('div', null, h('dt', null, stateBadge(feature.on ? 'up' : 'down', feature.name)), h('dd', null, feature.text, feature.fix ? h('div', { class: 'quiet' }, feature.fix) : null)))));
}

function nodeSection(node) {
  const gpus = state.gpus.filter((gpu) => gpu.node === node.name);
  return h('section', { 'aria-label': `Node ${node.name}` },
    h('div', { class: 'nodehead' }, h('h2', null, node.name), stateBadge(node.state), node.reason ? h('span', { class: 'warn' }, node.reason) : null,
      h('span', { class: 'quiet' }, `${plural(node.cpus, 'CPU')}, ${bytes(node.memory_bytes)}, ${plural(node.gpus, 'GPU')} by ${node.gpu_backend}, version ${node.version ?? '–'}`, node.since ? [', since ', time(node.since)] : null),
      mayManage() ? h('button', { type: 'button', onclick: () => toggleNode(node) }, node.state === 'drained' ? 'Resume' : 'Drain') : null),
    scrollArea(`GPUs of ${node.name}`, h('table', null, h('caption', { class: 'unseen' }, `GPUs of ${node.name}`), h('thead', null, h('tr', null, HEADS.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)), mayManage() ? h('th', null, h('span', { class: 'unseen' }, 'Actions')) : null)),
      h('tbody', null, gpus.map(gpuRow)))),
    node.features?.length ? featureList(node) : null);
}

const signature = (node) => [{ ...node }, mayManage(), state.gpus.filter((gpu) => gpu.node === node.name).map((gpu) => [gpu.state, gpu.reason, gpu.trouble, gpu.fault, gpu.xid, Math.round((gpu.utilization ?? -1) * 20), Math.round((gpu.memory_used_bytes ?? -1) / 2 ** 28),
  gpu.temperature_c, Math.round((gpu.power_w ?? -1) / 10), gpu.ecc_uncorrected, gpu.ecc_corrected, gpu.processes.map((process) => [process.pid, process.job])])];

export function mount(root) {
  const places = new Map(), list = h('div', { class: 'lists' });
  const nothing = h('p', { class: 'empty', hidden: true }, 'No node has connected to mgpud.');
  root.append(h('h1', { class: 'unseen' }, 'Nodes'), nothing, list);
  return {
    draw() {
      nothing.hidden = state.nodes.length > 0 || !state.hasFirst;
      for (const node of state.nodes) {
        if (!places.has(node.name)) {
          places.set(node.name, h('div'));
          list.append(places.get(node.name));
        }
        const place = places.get(node.name), isOpened = place.querySelector('details')?.open;
        redraw(place, signature(node), () => nodeSection(node));
        if (isOpened) place.querySelector('details').open = true;
      }
      for (const [name, place] of places) {
        if (state.nodes.some((node) => node.name === name)) continue;
        place.remove();
        places.delete(name);
      }
    },
  };
}
