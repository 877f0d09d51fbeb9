// SPDX-License-Identifier: MIT
// A form for a job, with the checks of mgpud before it is submitted, and the same request as a command line.
import { replaceView, say } from './actions.js';
import { post, submitKey } from './api.js';
import { h, setText } from './dom.js';
import { numberOf } from './format.js';
import { section, startText } from './parts.js';

const CHECK_MS = 400; // after the last key

// Name in the API, label, option of mgpu submit, what is typed, and how the value is sent.
const FIELDS = [
  ['name', 'Name', '-J', { placeholder: 'from the command' }, String],
  ['gpus', 'GPUs', '-g', { value: '1', placeholder: '1, 0.5, 2:h200', required: true }, (text) => (/^[0-9.]+$/.test(text) ? Number(text) : text)],
  ['gpu_mem', 'Memory on each GPU', '-m', { placeholder: 'whole GPUs' }, String],
  ['time_limit', 'Time limit', '-t', { placeholder: '4h' }, String],
  ['cpus', 'CPUs', '-c', { placeholder: 'any', inputmode: 'decimal' }, Number],
  ['memory', 'Host memory', '-M', { placeholder: 'any; for example 32G' }, String],
  ['priority', 'Priority', '-p', { placeholder: '0', inputmode: 'numeric' }, Number],
  ['after', 'After jobs', '-A', { placeholder: '41:ok' }, String],
  ['cwd', 'Working directory', '-C', { placeholder: 'your home directory' }, String],
  ['output', 'Output file', '-o', { placeholder: 'kept by mgpu' }, String],
];

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function mount(root) {
  const command = h('textarea', { id: 'f-command', rows: 4, required: true, spellcheck: false, autocapitalize: 'off', placeholder: 'python train.py --epochs 10' });
  const inputs = new Map(FIELDS.map(([name, , , attributes]) => [name, h('input', { id: `f-${name}`, autocomplete: 'off', spellcheck: false, ...attributes })]));
  const preemptible = h('input', { type: 'checkbox', id: 'f-preemptible' }), held = h('input', { type: 'checkbox', id: 'f-hold' });
  const verdict = h('div', { class: 'verdict', role: 'status' }), line = h('pre', { class: 'command' });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Submit');
  let timer = null, key = submitKey(), turn = 0;

  /** The body of POST /jobs. A login shell gives the command the environment that its user has there. */
  function request() {
    const body = { command: ['bash', '-lc', command.value] };
    for (const [name, , , , convert] of FIELDS) if (inputs.get(name).value.trim()) body[name] = convert(inputs.get(name).value.trim());
    if (!body.name) body.name = command.value.trim().split(/\s+/)[0]?.split('/').pop() ?? '';
    if (preemptible.checked) body.preemptible = true;
    if (held.checked) body.hold = true;
    return body;
  }

  function commandLine() {
    const words = ['mgpu submit'];
    for (const [name, , option] of FIELDS) if (inputs.get(name).value.trim() && !(name === 'gpus' && inputs.get(name).value === '1')) words.push(option, quote(inputs.get(name).value.trim()));
    if (preemptible.checked) words.push('--preemptible');
    if (held.checked) words.push('--hold');
    return `${words.join(' ')} -- bash -lc ${quote(command.value || '…')}`;
  }

  function showProblem(error) {
    verdict.className = 'verdict bad';
    setText(verdict, error.hint ? `${error.message} (${error.hint})` : error.message);
  }

  async function check() {
    const own = ++turn;
    setText(line, commandLine());
    if (!command.value.trim()) {
      verdict.className = 'verdict';
      setText(verdict, 'Type a command. The request is checked as you type; nothing is submitted until you press Submit.');
      return;
    }
    try {
      const why = await post('jobs?dry_run=1', request());
      if (own !== turn) return;
      verdict.className = `verdict ${why.starts_now ? 'good' : ''}`;
      const start = why.starts_now ? 'It would start now.' : `It would wait: ${why.reasons.map((reason) => reason.text).join('; ')}. ${startText(why)}`;
      setText(verdict, `${start}${why.change ? ` ${why.change.text}.` : ''}`);
    } catch (error) {
      if (own === turn) showProblem(error);
    }
  }

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const job = await post('jobs', { ...request(), submit_key: key });
      key = submitKey();
      say(`Job ${numberOf(job)} was submitted`);
      replaceView(`#/job/${numberOf(job)}`); // the way back is to where the form was opened
    } catch (error) {
      showProblem(error);
    }
    button.disabled = false;
  }

  const form = h('form', { class: 'submit', onsubmit: submit, oninput: () => {
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_MS);
    key = submitKey();
  } },
  h('label', { class: 'whole', for: 'f-command' }, 'Command', command),
  FIELDS.map(([name, label]) => h('label', { for: `f-${name}` }, label, inputs.get(name))),
  h('div', { class: 'checks whole' }, h('label', { for: 'f-preemptible' }, preemptible, ' use idle GPUs only, and yield to other jobs'), h('label', { for: 'f-hold' }, held, ' hold it until I release it')),
  h('div', { class: 'whole' }, verdict, h('div', { class: 'buttons' }, button)));
  root.append(h('h1', { class: 'unseen' }, 'New job'), section('Request', form), section('The same on the command line', line));
  check();
  command.focus();
  return { draw() {}, close: () => clearTimeout(timer) };
}
