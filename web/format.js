// SPDX-License-Identifier: MIT
// Numbers and times as people read them, the same way everywhere.

/** Seconds as "4.2 s", "12m", "3h 05m", "2d 4h". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(seconds < 1 ? 1 : 0)}s`;
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h ${String(minutes % 60).padStart(2, '0')}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** Bytes in GiB, or smaller units. */
export function bytes(count) {
  if (count === null || count === undefined) return '–';
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]])
    if (count >= size) return `${(count / size).toFixed(count >= 10 * size ? 0 : 1)} ${unit}`;
  return `${count} B`;
}

export const percent = (fraction) => (fraction === null || fraction === undefined ? '–' : `${Math.round(fraction * 100)}%`);

export const gpuHours = (seconds) =>
  (seconds === null || seconds === undefined ? '–' : (seconds / 3600).toFixed(seconds < 36000 ? 2 : 0));

/** A format that is made when it is first used: that takes longer than all else that the page does before its first request. */
const lazily = (options) => {
  let made = null;
  return (date) => (made ??= new Intl.DateTimeFormat([], options)).format(date);
};
const clock = lazily({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const exact = lazily({ hour: 'numeric', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const whole = lazily({ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: '2-digit', second: '2-digit' });
const day = lazily({ weekday: 'short', day: 'numeric', month: 'short' });

/** The time alone, where the day is known. */
export const timeOfDay = (value) => clock(new Date(value));

/** The time alone, to the second. */
export const exactTime = (value) => exact(new Date(value));

/** A moment: the time today, with the day otherwise. */
export function moment(value) {
  if (!value) return '–';
  const date = new Date(value);
  if (date.toDateString() === new Date().toDateString()) return clock(date);
  return `${day(date)} ${clock(date)}`;
}

/** The whole moment, for titles. */
export const fullMoment = (value) => (value ? whole(new Date(value)) : '');

export const secondsSince = (value) => (value ? (Date.now() - Date.parse(value)) / 1000 : null);

/** "2", "0.5", "2 x 8 GiB": the GPUs that a job requests. */
export function gpusOf(job) {
  if (job.gpu_share) return String(job.gpu_share / 1000);
  const memory = job.gpu_mem ? ` × ${bytes(job.gpu_mem)}` : '';
  return `${job.gpus ?? 0}${memory}${job.gpu_model ? ` ${job.gpu_model}` : ''}`;
}

/** A number with as many digits as mean something: "0.0017", "2.5", "15", "1203". */
export const figure = (value) => String(Number(value < 1 ? value.toPrecision(2) : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)));

/** "1 job", "0 jobs". */
export const plural = (count, word) => `${count} ${word}${Number(count) === 1 ? '' : 's'}`;

/** "1 GPU", "4 GPUs h200", "0.5 GPU", "1 × 8 GiB". */
export function gpusText(job) {
  if (job.gpu_mem && !job.gpu_share) return gpusOf(job);
  const count = job.gpu_share ? job.gpu_share / 1000 : job.gpus ?? 0;
  return `${count} ${count > 1 || count === 0 ? 'GPUs' : 'GPU'}${job.gpu_model ? ` ${job.gpu_model}` : ''}`;
}

/** "42" or, of an array, "42.3". */
export const numberOf = (job) => (job.array_job ? `${job.array_job}.${job.array_index}` : String(job.id));

/** "250 done, 50 failed" of an array, as its own record counts them: not those that happen to be listed. */
export const elementsOf = (job) => ['done', 'failed', 'cancelled'].filter((state) => job.elements?.[state]).map((state) => `${job.elements[state]} ${state}`).join(', ');

const ENDS = { cancelled: 'cancelled', start_failed: 'did not start', setup_failed: 'setup failed', unknown: 'result unknown', reboot: 'node rebooted', time_limit: 'time limit reached',
  deadline: 'deadline missed', dependency: 'dependency not satisfied', oom: 'out of memory', gpu_fault: 'GPU error', idle_timeout: 'idle timeout', released: 'released', node_lost: 'node lost',
  gpu_oom: 'out of GPU memory', gpu_mem: 'exceeded its GPU memory', budget: 'GPU-hours used up' };

/** An `ended_by` in words. */
export const endWords = (end) => ENDS[end] ?? end.replaceAll('_', ' ');

/** The end of a job in a few words. */
export function outcome(job) {
  if (!job.ended_by) return job.state;
  if (job.elements && job.ended_by === 'exit') return elementsOf(job);
  if (job.ended_by === 'exit') return job.exit_code === 0 ? 'done' : `exit ${job.exit_code}`;
  if (job.ended_by === 'signal') return `signal ${job.signal}`;
  return endWords(job.ended_by);
}

/** A colour number from 0 to 7 for a user, the same on every page. */
export function colourOf(name) {
  let sum = 0;
  for (const letter of String(name)) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return sum % 8;
}
