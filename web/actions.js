// SPDX-License-Identifier: MIT
// What a person does to jobs, GPUs and nodes: the dialogs, the requests and their answers. What cannot be taken back asks
// first.
import { post } from './api.js';
import { h } from './dom.js';
import { numberOf } from './format.js';

const dialog = () => document.getElementById('dialog');

/** Shows a sentence for some seconds, and tells it to screen readers. */
export function say(text, isBad = false) {
  const note = h('div', { class: `note ${isBad ? 'bad' : ''}` }, text);
  document.body.append(note);
  document.getElementById('says').textContent = text;
  setTimeout(() => note.remove(), isBad ? 8000 : 4000);
}

export const sayProblem = (error) => say(error.hint ? `${error.message} (${error.hint})` : error.message, true);

/** Asks in a dialog. Resolves to the values of its fields, or null. */
export function ask({ title, text, fields = [], action, isDangerous = false }) {
  return new Promise((resolve) => {
    const box = dialog();
    const inputs = fields.map((field) => h('input', { id: `ask-${field.name}`, name: field.name, type: field.type ?? 'text', value: field.value ?? '', required: field.required }));
    const form = h('form', { method: 'dialog' },
      h('h2', null, title), text ? h('p', null, text) : null,
      fields.map((field, i) => h('label', { for: `ask-${field.name}` }, field.label, inputs[i])),
      h('div', { class: 'buttons' },
        h('button', { type: 'submit', value: 'no', formnovalidate: true }, 'Back'),
        h('button', { type: 'submit', value: 'yes', class: isDangerous ? 'danger' : 'primary' }, action)));
    // Enter in a field is the action, not the first button.
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.target.tagName === 'INPUT') {
        event.preventDefault();
        if (form.reportValidity()) box.close('yes');
      }
    });
    box.returnValue = 'no';
    box.setAttribute('aria-label', title);
    box.replaceChildren(form);
    box.addEventListener('close', () => {
      resolve(box.returnValue === 'yes' ? Object.fromEntries(inputs.map((input) => [input.name, input.value])) : null);
    }, { once: true });
    box.showModal();
    (inputs[0] ?? form.querySelector('button[value=yes]')).focus();
  });
}

/** Shows a page of the dialog with nothing to decide. */
export function tell(title, ...content) {
  const box = dialog();
  box.setAttribute('aria-label', title);
  box.replaceChildren(h('form', { method: 'dialog' }, h('h2', null, title), content,
    h('div', { class: 'buttons' }, h('button', { type: 'submit', value: 'no', class: 'primary' }, 'Close'))));
  box.showModal();
}

/** Shows another view in place of this one, which the way back then skips. */
export function replaceView(hash) {
  window.history.replaceState(window.history.state, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

async function attempt(what, done) {
  try {
    const answer = await what();
    say(done);
    return answer;
  } catch (error) {
    sayProblem(error);
    return null;
  }
}

const pathOf = (job, verb) => `jobs/${numberOf(job)}/${verb}`;

export async function cancel(job) {
  const isRunning = job.state !== 'queued';
  if (!await ask({ title: `Cancel job ${numberOf(job)}?`, text: isRunning ? `${job.name} is ${job.state}. It gets SIGTERM, then SIGKILL.` : `${job.name} is waiting.`,
    action: 'Cancel the job', isDangerous: true })) return;
  await attempt(() => post(pathOf(job, 'cancel')), `Job ${numberOf(job)} is being cancelled`);
}

export async function hold(job) {
  const verb = job.hold ? 'release' : 'hold';
  await attempt(() => post(pathOf(job, verb)), `Job ${numberOf(job)} is ${verb === 'hold' ? 'held' : 'released'}`);
}

export async function park(job) {
  const verb = job.park ? 'unpark' : 'park';
  if (verb === 'park' && !await ask({ title: `Park job ${numberOf(job)}?`, text: `The contents of its GPU memory are moved to host memory, its processes are stopped, and its GPUs go to other jobs until it is unparked.`, action: 'Park' })) return;
  await attempt(() => post(pathOf(job, verb)), `Job ${numberOf(job)} ${verb === 'park' ? 'is being parked' : 'returns when its GPUs are free'}`);
}

export async function requeue(job) {
  if (!await ask({ title: `Requeue job ${numberOf(job)}?`, text: `${job.name} is ended and moves to the end of the queue.`, action: 'Requeue', isDangerous: true })) return;
  await attempt(() => post(pathOf(job, 'requeue')), `Job ${numberOf(job)} is being requeued`);
}

export async function setPriority(job) {
  const values = await ask({ title: `Priority of job ${numberOf(job)}`, text: 'From -1000 to 1000, higher runs first. Above 0, it orders your own jobs only, unless you are an operator.',
    fields: [{ name: 'priority', label: 'Priority', type: 'number', value: job.priority ?? 0, required: true }], action: 'Set' });
  if (values) await attempt(() => post(pathOf(job, 'edit'), { priority: Number(values.priority) }), `Job ${numberOf(job)} has priority ${values.priority}`);
}

export async function setTimeLimit(job) {
  const values = await ask({ title: `Time limit of job ${numberOf(job)}`, text: 'Such as 90m or 4h. The limit of a running job can be shortened by its owner and extended by operators.',
    fields: [{ name: 'limit', label: 'Time limit', value: job.time_limit ? `${Math.round(job.time_limit)}s` : '', required: true }], action: 'Set' });
  if (values) await attempt(() => post(pathOf(job, 'edit'), { time_limit: values.limit }), `The time limit of job ${numberOf(job)} is ${values.limit}`);
}

export const applyChange = (job, edit) => attempt(() => post(pathOf(job, 'edit'), edit), `Job ${numberOf(job)} is changed`);

export async function retry(job, submitKey) {
  const made = await attempt(() => post(pathOf(job, 'retry'), { submit_key: submitKey }), 'Submitted again');
  if (made) location.hash = `#/job/${numberOf(made)}`;
}

export async function toggleNode(node) {
  const isDrained = node.state === 'drained';
  const values = isDrained ? {} : await ask({ title: `Drain node ${node.name}?`, text: 'Jobs that run there continue; no new ones start.',
    fields: [{ name: 'reason', label: 'Reason' }], action: 'Drain' });
  if (!values) return;
  const body = values.reason ? { reason: values.reason } : {};
  await attempt(() => post(`nodes/${encodeURIComponent(node.name)}/${isDrained ? 'resume' : 'drain'}`, body), `Node ${node.name} is ${isDrained ? 'resumed' : 'drained'}`);
}

export async function toggleGpu(gpu) {
  const name = `${gpu.node}:${gpu.index}`;
  const isPaused = gpu.state === 'paused' || gpu.state === 'drained' || gpu.state === 'released';
  const values = isPaused ? {} : await ask({ title: `Pause GPU ${name}?`, text: 'Jobs on it continue; no new ones start.', fields: [{ name: 'reason', label: 'Reason' }], action: 'Pause' });
  if (!values) return;
  const body = { gpus: [name], ...(values.reason ? { reason: values.reason } : {}) };
  await attempt(() => post(`gpus/${isPaused ? 'resume' : 'pause'}`, body), `GPU ${name} is ${isPaused ? 'resumed' : 'paused'}`);
}
