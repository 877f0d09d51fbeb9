// SPDX-License-Identifier: MIT
// The ticks of a time axis: round local times, so many that their texts do not touch.
import { exactTime, moment, timeOfDay } from './format.js';

const MINUTE = 60000, HOUR = 60 * MINUTE;
const STEPS = [1000, 5000, 15000, 30000, MINUTE, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR / 2, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 96 * HOUR];
export const TICK_WIDTH = 108; // pixels that the text of a tick needs

/** [{ at, text }] between two moments (ms) on an axis of `width` pixels. The day stands once for its ticks. */
export function ticksOf(from, to, width) {
  const step = STEPS.find((one) => ((to - from) / one) * TICK_WIDTH <= width) ?? 7 * 24 * HOUR;
  const offset = new Date(from).getTimezoneOffset() * MINUTE, found = [];
  let day = null;
  for (let at = Math.ceil((from - offset) / step) * step + offset; at < to; at += step) {
    const own = new Date(at).toDateString();
    const text = step < MINUTE ? exactTime(at) : own === day ? timeOfDay(at) : moment(new Date(at).toISOString());
    found.push({ at, text });
    day = own;
  }
  return found;
}
