// SPDX-License-Identifier: MIT
// When a job had its GPUs, was parked, and is expected to have them: stretches of time, without a picture.
import { isOpen } from './live.js';

/** Seconds since its start in which it did not run: parked, or early without its GPUs (null: it never was). */
export const restOf = (job) => (job.parked_seconds ? job.parked_seconds : 0) + (job.early_seconds ? job.early_seconds : 0);

/** For how many seconds a job has run: now, while it does; what it is parked is no run time. */
export const ranOf = (job) => (job.ended_at || job.parked_at || job.park === 'early' ? job.run_seconds : (Date.now() - Date.parse(job.started_at)) / 1000 - restOf(job));

/** The end of a job by its time limit, which does not pass while it is parked; Infinity: it has none. In ms. */
export const limitOf = (job) => (job.time_limit ? Date.parse(job.started_at) + (job.time_limit + restOf(job)) * 1000 : Infinity);

/** Whether the events of the job say more than its times do: it was parked. */
export const hasParks = (job) => Boolean(job.park || job.parked_seconds);

const isBegin = (type) => type === 'allocated' || type === 'restoring';
const isEnd = (type) => type === 'requeued' || type === 'ended';

/** [{ kind: 'ran' or 'parked', from, to, granted }] by the events of a job; what has not ended ends `now`. */
function byEvents(job, now) {
  const found = [];
  let open = null;
  const close = (at) => {
    if (open) found.push({ ...open, to: at });
    open = null;
  };
  for (const event of job.events) {
    const at = Date.parse(event.at), granted = event.granted ?? found.at(-1)?.granted ?? open?.granted ?? job.granted;
    if (isBegin(event.type)) {
      close(at);
      open = { kind: 'ran', from: at, granted };
    } else if (event.type === 'parked') {
      const kept = open?.granted ?? granted;
      close(at);
      open = { kind: 'parked', from: at, granted: kept };
    } else if (isEnd(event.type)) close(at);
  }
  close(job.ended_at ? Date.parse(job.ended_at) : now);
  return found.filter((one) => one.to > one.from || one.kind === 'ran');
}

/**
 * What a job has had and is expected to have: stretches of kind 'ran' and 'parked' until now, then 'expected' until its
 * expected end and 'tail' until its time limit. `job.events` are used if they are there. A job without a limit has a tail
 * without an end.
 */
export function spansOf(job, now) {
  const start = Date.parse(job.started_at);
  const past = job.events ? byEvents(job, now) : [{ kind: 'ran', from: start, to: job.ended_at ? Date.parse(job.ended_at) : now, granted: job.granted }];
  if (!isOpen(job) || (job.park && job.park !== 'restoring' && job.park !== 'saving')) return past;
  const expected = job.expected_end ? Math.max(now, Date.parse(job.expected_end)) : now, limit = Math.max(expected, limitOf(job));
  const granted = job.granted;
  return [...past, { kind: 'expected', from: now, to: expected, granted }, { kind: 'tail', from: expected, to: limit, granted }];
}

/** The moment at which a job had run for `elapsed` ms: what it was parked lies between its stretches. */
export function momentOf(spans, elapsed) {
  const ran = spans.filter((span) => span.kind === 'ran');
  let left = elapsed;
  for (const span of ran) {
    if (left <= span.to - span.from) return span.from + left;
    left -= span.to - span.from;
  }
  return (ran.at(-1)?.to ?? 0) + left;
}

/** What is expected of a waiting job, from its expected start. */
export function forecastOf(job) {
  const from = Date.parse(job.eta), to = job.expected_end ? Date.parse(job.expected_end) : from;
  return [{ kind: 'expected', from, to }, { kind: 'tail', from: to, to: job.time_limit ? Math.max(to, from + job.time_limit * 1000) : Infinity }];
}
