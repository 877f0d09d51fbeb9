// SPDX-License-Identifier: MIT
// Charts as SVG. Colours come from classes, so that both themes and forced colours apply. Each chart has a text for
// screen readers, and its numbers stand beside it or in a table.
import { h, s } from './dom.js';

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

/** The smallest of 1, 2, 5, 10, 20 ... (and of 0.1, 0.01) that is at least `value`. */
export function niceMax(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= value * 0.9999);
}

const COLUMN_LABEL = 46; // pixels that a label below bars, or a number above one, needs

/**
 * Bars side by side with an axis. `bars`: [{ label, parts: [{ name, value }], text, before, act }]: `before` is the value of
 * the period that it is compared with, `act` what a click does. `format` writes a value; `width` is that of the place in pixels.
 */
export function barChart({ title, note, bars, format, width }) {
  const heightOf = (bar) => bar.parts.reduce((sum, part) => sum + part.value, 0);
  const max = niceMax(Math.max(...bars.map((bar) => Math.max(heightOf(bar), bar.before ?? 0))));
  const column = Math.max(1, (width - 80) / Math.max(1, bars.length)), every = Math.ceil(COLUMN_LABEL / column);
  return h('figure', { class: 'chart bars' },
    h('figcaption', null, h('strong', null, title), h('span', { class: 'key' }, note)),
    h('div', { class: 'plot tall' },
      h('div', { class: 'scale', 'aria-hidden': 'true' }, [1, 0.5, 0].map((at) => h('span', null, format(at * max)))),
      h('div', { class: 'columns', role: 'list' }, bars.map((bar, i) => h('div', { class: 'column', role: 'listitem' }, barButton(bar, max, column >= COLUMN_LABEL && heightOf(bar) > 0 ? format(heightOf(bar)) : null),
        h('small', { 'aria-hidden': 'true' }, i % every === 0 ? bar.label : ''))))));
}

/** The bar itself: a button, whose name is what it shows. */
function barButton(bar, max, number) {
  const piece = (name, value) => {
    const node = h('div', { class: `piece piece-${name}` });
    node.style.height = `${(value / max) * 100}%`;
    return node;
  };
  return h('button', { type: 'button', class: 'stack', title: `${bar.label}: ${bar.text}`, 'aria-label': `${bar.label}: ${bar.text}`, onclick: bar.act },
    number ? h('span', { class: 'number', 'aria-hidden': 'true' }, number) : null, bar.parts.map((part) => piece(part.name, part.value)),
    bar.before ? piece('before', bar.before) : null);
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
