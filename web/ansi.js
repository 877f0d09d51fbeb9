// SPDX-License-Identifier: MIT
// Output of programs as lines of coloured text. Colours and styles (CSI ... m) are shown; of all other sequences, only a
// carriage return, a backspace and "erase line" have their meaning, as progress bars use them; the rest is removed.
import { h } from './dom.js';

const LINES_MAX = 5000;
const LINE_MAX = 10000;
export const PARTIAL_MAX = 4096; // an escape sequence longer than this is none

const LEVELS = [0, 95, 135, 175, 215, 255];

/** The colour number `n` of 256 beyond the sixteen that the theme has. */
function colourOf256(n) {
  if (n >= 232) return `rgb(${Array(3).fill(8 + (n - 232) * 10).join(' ')})`;
  const cube = n - 16;
  return `rgb(${LEVELS[Math.floor(cube / 36)]} ${LEVELS[Math.floor(cube / 6) % 6]} ${LEVELS[cube % 6]})`;
}

/** Reads "5;N" or "2;R;G;B" after 38 or 48; returns the colour and how many numbers it took. */
function extendedColour(numbers, at) {
  if (numbers[at] === 5) {
    const n = numbers[at + 1] ?? 0;
    return [n < 16 ? n : n < 256 ? colourOf256(n) : null, 2];
  }
  if (numbers[at] === 2) {
    const rgb = numbers.slice(at + 1, at + 4);
    return [rgb.length === 3 && rgb.every((part) => part < 256) ? `rgb(${rgb.join(' ')})` : null, 4];
  }
  return [null, 1];
}

const FLAGS = { 1: ['bold', true], 2: ['dim', true], 3: ['italic', true], 4: ['underline', true], 7: ['reverse', true],
  23: ['italic', false], 24: ['underline', false], 27: ['reverse', false] };

/** The style after "CSI parameters m". */
export function restyle(style, parameters) {
  const numbers = parameters.split(/[;:]/).map((text) => Number(text || 0));
  let next = { ...style };
  for (let i = 0; i < numbers.length; i++) {
    const n = numbers[i];
    if (n === 0) next = {};
    else if (FLAGS[n]) next[FLAGS[n][0]] = FLAGS[n][1];
    else if (n === 22) next.bold = next.dim = false;
    else if (n >= 30 && n <= 37) next.fore = n - 30;
    else if (n >= 90 && n <= 97) next.fore = n - 82;
    else if (n === 39) next.fore = null;
    else if (n >= 40 && n <= 47) next.back = n - 40;
    else if (n >= 100 && n <= 107) next.back = n - 92;
    else if (n === 49) next.back = null;
    else if (n === 38 || n === 48) {
      const [colour, used] = extendedColour(numbers, i + 1);
      next[n === 38 ? 'fore' : 'back'] = colour;
      i += used;
    }
  }
  return next;
}

export function styledSpan(text, style) {
  let { fore, back } = style;
  if (style.reverse) [fore, back] = [back ?? 'reverse', fore ?? 'reverse'];
  const classes = ['bold', 'dim', 'italic', 'underline'].filter((name) => style[name]);
  const span = h('span', null, text);
  for (const [value, name, property] of [[fore, 'fore', 'color'], [back, 'back', 'background']]) {
    if (value === null || value === undefined) continue;
    if (typeof value === 'number' || value === 'reverse') classes.push(`${name}-${value}`);
    else span.style[property] = value;
  }
  if (classes.length) span.className = classes.join(' ');
  return span;
}

// CSI ... final; OSC ... BEL or ST; two-character escapes; an escape that is not complete yet is kept for the next piece.
export const TOKEN = /\x1b\[([0-9;:<=>?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|\r\n|[\n\r\x08]|[\x00-\x07\x0b-\x1f\x7f]|[^\x00-\x08\x0a-\x1f\x7f]+/g;
export const PARTIAL = /\x1b(?:\[[0-9;:<=>?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$/;

/** Writes output into `pane`, a line per child. */
export class Terminal {
  constructor(pane) {
    this.pane = pane;
    this.style = {};
    this.rest = '';
    this.newLine();
  }

  newLine() {
    this.cells = []; // characters of the current line, each with its style
    this.column = 0;
    this.line = h('div', { class: 'line' });
    this.pane.append(this.line);
    while (this.pane.childElementCount > LINES_MAX) this.pane.firstElementChild.remove();
  }

  write(text) {
    let input = this.rest + text;
    const partial = PARTIAL.exec(input);
    this.rest = partial && partial[0].length < PARTIAL_MAX ? partial[0] : '';
    if (this.rest) input = input.slice(0, -this.rest.length);
    // A carriage return at the end may be half of a line's end.
    if (!this.rest && input.endsWith('\r')) {
      this.rest = '\r';
      input = input.slice(0, -1);
    }
    for (const token of input.matchAll(TOKEN)) this.take(token);
    this.draw();
  }

  take([token, parameters, final]) {
    if (final === 'm') this.style = restyle(this.style, parameters);
    else if (final === 'K') this.erase(Number(parameters || 0));
    else if (token === '\n' || token === '\r\n') {
      this.draw();
      this.newLine();
    } else if (token === '\r') this.column = 0;
    else if (token === '\b') this.column = Math.max(0, this.column - 1);
    else if ((token >= ' ' && token !== '\x7f') || token[0] === '\t') this.put(token);
  }

  erase(what) {
    if (what === 0) this.cells.length = Math.min(this.cells.length, this.column);
    else if (what === 2) this.cells = Array(this.column).fill([' ', {}]);
  }

  put(text) {
    for (const letter of text) {
      if (this.column >= LINE_MAX) return;
      while (this.cells.length < this.column) this.cells.push([' ', {}]);
      this.cells[this.column++] = [letter, this.style];
    }
  }

  /** The current line, with one element per run of equal style. */
  draw() {
    const parts = [];
    let run = '', style = null;
    for (const [letter, own] of this.cells) {
      if (own !== style && run) {
        parts.push(styledSpan(run, style));
        run = '';
      }
      style = own;
      run += letter;
    }
    if (run) parts.push(Object.keys(style).length ? styledSpan(run, style) : run);
    this.line.replaceChildren(...parts);
  }
}
