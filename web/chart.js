// SPDX-License-Identifier: MIT
// Charts as SVG. Colours come from classes, so that both themes and forced colours apply. Each chart has a text for
// screen readers, and its numbers stand beside it or in a table.
import { h, s } from './dom.js';
import { moment } from './format.js';

/** Points of a polyline through `values` (0 to 1; null: a gap) as the commands of a path. */
function pathOf(values, width, height) {
  const step = width / Math.max(1, values.length - 1);
  let path = '', isDown = false;
  values.forEach((value, i) => {
    if (value === null || value === undefined) {
      isDown = false;
      return;
    }
    const y = height - Math.min(1, Math.max(0, value)) * height;
    path += `${isDown ? 'L' : 'M'}${(i * step).toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  return path;
}

/** A small line without axes, as wide as its place. `lines`: [{ values, name }]. */
export function sparkline(lines, label) {
  return s('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    lines.map((line) => s('path', { class: `line-${line.name}`, d: pathOf(line.values, 100, 24), 'vector-effect': 'non-scaling-stroke' })));
}

/** Shows other values in a small line that has as many lines as before. */
export function setSparkline(node, lines) {
  lines.forEach((line, i) => node.children[i].setAttribute('d', pathOf(line.values, 100, 24)));
}

/**
 * Lines over time with a scale. `series`: [{ name, label, values }], values as fractions of `max`, which `format` writes.
 * `from` and `to` are moments in ms.
 */
export function timeChart({ title, series, from, to, max, format }) {
  const grid = [0, 0.5, 1];
  const known = series.filter((one) => one.values.some((value) => value !== null && value !== undefined));
  const lastOf = (values) => values.findLast((value) => value !== null && value !== undefined);
  const summary = known.map((one) => `${one.label} now ${format(lastOf(one.values) * max)}`).join(', ');
  return h('figure', { class: 'chart' },
    h('figcaption', null, h('strong', null, title),
      known.map((one, i) => h('span', { class: 'key' }, h('i', { class: `swatch fill-${i % 8}` }), `${one.label} `, h('b', null, format(lastOf(one.values) * max))))),
    h('div', { class: 'plot' },
      h('div', { class: 'scale', 'aria-hidden': 'true' }, grid.map((at) => h('span', null, format((1 - at) * max)))),
      s('svg', { viewBox: '0 0 400 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${summary || 'no samples'}` },
        grid.map((at) => s('line', { class: 'grid', x1: 0, x2: 400, y1: at * 100, y2: at * 100, 'vector-effect': 'non-scaling-stroke' })),
        known.map((one, i) => s('path', { class: `line line-${i % 8}`, d: pathOf(one.values, 400, 100), 'vector-effect': 'non-scaling-stroke' })))),
    h('div', { class: 'times', 'aria-hidden': 'true' }, h('span', null, moment(from)), h('span', null, moment(to))));
}

/** Bars side by side. `bars`: [{ label, parts: [{ name, value }], text }]. */
export function barChart(title, bars) {
  const max = Math.max(1e-9, ...bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0)));
  return h('figure', { class: 'chart bars' },
    h('figcaption', null, h('strong', null, title)),
    h('div', { class: 'columns', role: 'list' }, bars.map((bar) => h('div', { class: 'column', role: 'listitem', title: `${bar.label}: ${bar.text}`, 'aria-label': `${bar.label}: ${bar.text}` },
      h('div', { class: 'stack' }, bar.parts.map((part) => {
        const piece = h('div', { class: `piece piece-${part.name}` });
        piece.style.height = `${(part.value / max) * 100}%`;
        return piece;
      })),
      h('small', { 'aria-hidden': 'true' }, bar.label)))));
}

/** A horizontal bar from 0 to 1 with its number beside it. */
export function meter(fraction, name, text, label) {
  const node = h('div', { class: 'meter', role: 'img' }, h('div', { class: 'track' }, h('div', { class: `level level-${name}` })), h('span'));
  setMeter(node, fraction, text, label);
  return node;
}

/** Shows another value in a meter, without a new layout when nothing can be seen of it. */
export function setMeter(node, fraction, text, label) {
  const width = `${Math.round(Math.min(1, Math.max(0, fraction ?? 0)) * 100)}%`;
  const level = node.firstChild.firstChild;
  if (level.style.width !== width) level.style.width = width;
  if (node.lastChild.textContent === text) return;
  node.lastChild.textContent = text;
  node.setAttribute('aria-label', `${label}: ${text}`);
}
