// SPDX-License-Identifier: MIT
// GPU time of jobs by hour, user or GPU, from the jobs themselves: each counts where it ran, not where it ended.

import { ranOf, restOf } from './spans.js';

export const HOUR = 3600000; // ms
export const DAY = 24 * HOUR;

/** The part of a GPU that a job has of it. */
const weightOf = (gpu) => (gpu.share ? gpu.share / 1000 : 1);

/** The share of its GPU time that a job did not use, as far as it was measured. */
const wasteOf = (job) => (job.gpu_seconds_measured ? (job.gpu_seconds_wasted ?? 0) / job.gpu_seconds_measured : 0);

/** Seconds of [from, to) in which the job ran; moments in ms. When one that was parked did so is not known here: its run time counts evenly. */
function secondsIn(job, from, to) {
  if (!job.started_at) return 0;
  const start = Date.parse(job.started_at), end = job.ended_at ? Date.parse(job.ended_at) : Date.now();
  const seconds = Math.max(0, Math.min(to, end) - Math.max(from, start)) / 1000;
  return restOf(job) > 0 && end > start ? seconds * Math.min(1, ranOf(job) * 1000 / (end - start)) : seconds;
}

/** The name of a GPU for people. */
export const gpuName = (job, gpu) => `${gpu.node ?? job.node}:${gpu.index}`;

export const ranIn = (job, from, to) => secondsIn(job, from, to) > 0;

/** { gpu_seconds, gpu_seconds_wasted, jobs } of each key in [from, to). `keyOf` names the sum of a job and one of its GPUs. */
export function sumsBy(jobs, from, to, keyOf) {
  const sums = new Map();
  for (const job of jobs) {
    const seconds = secondsIn(job, from, to);
    if (seconds === 0) continue;
    const own = new Set();
    for (const gpu of job.granted ?? []) {
      const key = keyOf(job, gpu), sum = sums.get(key) ?? { key, gpu_seconds: 0, gpu_seconds_wasted: 0, jobs: 0 };
      sum.gpu_seconds += seconds * weightOf(gpu);
      sum.gpu_seconds_wasted += seconds * weightOf(gpu) * wasteOf(job);
      if (!own.has(key)) sum.jobs++;
      own.add(key);
      sums.set(key, sum);
    }
  }
  return [...sums.values()].sort((a, b) => b.gpu_seconds - a.gpu_seconds);
}

/** The same for each step (ms) of [from, to), also for those without a job; `key` is its beginning in ms. */
export function sumsByStep(jobs, from, to, step) {
  const found = [];
  for (let at = Math.floor(from / step) * step; at < to; at += step) {
    const [sum] = sumsBy(jobs, Math.max(at, from), Math.min(at + step, to), () => at);
    found.push(sum ?? { key: at, gpu_seconds: 0, gpu_seconds_wasted: 0, jobs: 0 });
  }
  return found;
}

/** All days of [from, to), in UTC as mgpud counts them, with the sums of those that have any. */
export function allDays(sums, from, to) {
  const known = new Map(sums.map((sum) => [sum.day, sum])), found = [];
  for (let at = Math.floor(from / DAY) * DAY; at < to; at += DAY) {
    found.push({ gpu_seconds: 0, gpu_seconds_wasted: 0, jobs: 0, ...known.get(new Date(at).toISOString().slice(0, 10)), key: at });
  }
  return found;
}

/** GPU time, its unused part, and jobs of all sums together. */
export const total = (sums) => ({
  gpu_seconds: sums.reduce((all, sum) => all + sum.gpu_seconds, 0),
  gpu_seconds_wasted: sums.reduce((all, sum) => all + (sum.gpu_seconds_wasted ?? 0), 0),
  jobs: sums.reduce((all, sum) => all + sum.jobs, 0),
});
