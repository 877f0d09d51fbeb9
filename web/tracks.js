// SPDX-License-Identifier: MIT
// Curves below each other on one time axis, with the events of a job: a line through all of them for each event, and
// hatched what it was parked. Places on the axis are fractions, so that the picture is as wide as its place.
import { ticksOf } from './axis.js';
import { h, s } from './dom.js';
import { exactTime } from './format.js';

const SCALE_WIDTH = 40; // pixels left of the curves
const LETTER = 6.5;     // pixels of a letter of a label, about
const GRID = [0, 0.5, 1];

const isValue = (value) => value !== null && value !== undefined;

/** The commands of a path through values (0 to 1; null: a gap) at these moments. */
function pathOf({ values, moments }, placeOf) {
  let path = '', isDown = false;
  values.forEach((value, i) => {
    const x = placeOf(moments[i]);
    if (!isValue(value) || x < 0 || x > 1) {
      isDown = false;
      return;
    }
    const y = 100 - Math.min(1, Math.max(0, value)) * 100;
    path += `${isDown ? 'L' : 'M'}${(x * 1000).toFixed(1)} ${y.toFixed(1)}${isDown ? '' : 'h0.1'}`;
    isDown = true;
  });
  return path;
}

/** One diagram: its curves, the lines of the events, and the parked stretches. */
function track({ title, series, max, format }, { placeOf, events, parked }) {
  const known = series.filter((one) => one.values.some(isValue));
  const last = (one) => format(one.values.findLast(isValue) * max);
  const summary = known.map((one) => `${one.label} ${last(one)}`).join(', ');
  return h('div', { class: 'track' },
    h('div', { class: 'keys-of' }, h('strong', null, title), known.map((one, i) => h('span', { class: 'key' }, h('i', { class: `swatch fill-${i % 8}` }), `${one.label} `, h('b', null, last(one))))),
    h('div', { class: 'plot' },
      h('div', { class: 'scale', 'aria-hidden': 'true' }, GRID.map((at) => h('span', null, format((1 - at) * max)))),
      s('svg', { viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${summary ? `last ${summary}` : 'no samples'}` },
        parked.map(({ from, to }) => s('rect', { class: 'parkedspan', x: placeOf(from) * 1000, width: Math.max(1, (placeOf(to) - placeOf(from)) * 1000), y: 0, height: 100 })),
        GRID.map((at) => s('line', { class: 'grid', x1: 0, x2: 1000, y1: at * 100, y2: at * 100, 'vector-effect': 'non-scaling-stroke' })),
        events.map((event) => s('line', { class: 'eventline', x1: placeOf(event.at) * 1000, x2: placeOf(event.at) * 1000, y1: 0, y2: 100, 'vector-effect': 'non-scaling-stroke' })),
        known.map((one, i) => s('path', { class: `line line-${i % 8}`, d: pathOf(one, placeOf), 'vector-effect': 'non-scaling-stroke' })))));
}

/** An element at a place of the axis. */
function at(place, node) {
  node.style.left = `${place * 100}%`;
  return node;
}

/** The marks of the events; a label where it does not touch the one before, and left of its mark at the right end. */
function eventLane({ placeOf, events, width }) {
  let free = 0; // pixels
  const marks = events.map((event) => {
    const place = placeOf(event.at), x = place * width, need = event.text.length * LETTER + 12, isLeft = x + need > width;
    const hasLabel = isLeft ? x - need >= free : x >= free;
    if (hasLabel) free = isLeft ? x + 8 : x + need;
    return at(place, h('span', { class: `event ${isLeft ? 'left' : ''}`, title: `${event.text} ${exactTime(event.at)}` }, h('i'), hasLabel ? event.text : null));
  });
  return h('div', { class: 'lane', role: 'img', 'aria-label': `Events: ${events.map((event) => `${event.text} ${exactTime(event.at)}`).join(', ')}` }, marks);
}

/**
 * The diagrams of a job. `tracks`: [{ title, series: [{ label, values, moments }], max, format }], values as fractions
 * of `max`, at moments in ms. `events`: [{ at, text }], `parked`:
 * [{ from, to }]. `from` and `to` are the ends of the axis, `width` the pixels of the place.
 */
export function timeTracks({ title, from, to, tracks, events, parked, width }) {
  const placeOf = (moment) => (moment - from) / Math.max(1, to - from);
  const inside = events.filter((event) => event.at >= from && event.at <= to);
  const common = { placeOf, events: inside, width: Math.max(100, width - SCALE_WIDTH - 24),
    parked: parked.map((one) => ({ from: Math.max(from, one.from), to: Math.min(to, one.to) })).filter((one) => one.to > one.from) };
  return h('figure', { class: 'chart tracks' }, h('figcaption', null, h('strong', null, title), common.parked.length ? h('span', { class: 'key' }, 'shaded: parked') : null),
    eventLane(common), tracks.map((one) => track(one, common)),
    h('div', { class: 'lane axis', 'aria-hidden': 'true' }, ticksOf(from, to, common.width).map((tick) => at(placeOf(tick.at), h('span', { class: 'event' }, tick.text)))));
}
