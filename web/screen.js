// SPDX-License-Identifier: MIT
// The terminal of a job as its programs draw it: a grid of characters with a cursor, of which lines that scroll out stay
// above. Full-screen programs (htop, vim, several progress bars) address places of the grid. Its size is that of the
// viewer who may type, which a log does not tell: it grows to the places that are addressed.
import { restyle, styledSpan, TOKEN, PARTIAL, PARTIAL_MAX } from './ansi.js';
import { h } from './dom.js';

const LINES_MAX = 5000;
const ROWS = 24, ROWS_MAX = 300, COLUMNS_MAX = 1000;

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

/** Shows output in `pane`, a line per child, of which the last ones are the grid. */
export class Screen {
  constructor(pane) {
    this.pane = pane;
    this.rest = '';
    this.style = {};
    this.saved = [0, 0];
    this.main = null; // the grid behind the alternate screen
    this.clear(ROWS);
  }

  newRow() {
    return { cells: [], node: null, isChanged: true };
  }

  clear(count) {
    for (const row of this.rows ?? []) row.node?.remove();
    this.rows = Array.from({ length: count }, () => this.newRow());
    [this.row, this.column, this.top, this.bottom] = [0, 0, 0, null];
  }

  get last() { return this.bottom ?? this.rows.length - 1; }

  write(text) {
    let input = this.rest + text;
    const partial = PARTIAL.exec(input);
    this.rest = partial && partial[0].length < PARTIAL_MAX ? partial[0] : '';
    if (this.rest) input = input.slice(0, -this.rest.length);
    for (const token of input.matchAll(TOKEN)) this.take(token);
    this.draw();
  }

  take([token, parameters, final]) {
    if (final) this.control(final, parameters);
    else if (token === '\x1bM') this.reverseFeed();
    else if (token === '\x1b7') this.saved = [this.row, this.column];
    else if (token === '\x1b8') this.move(...this.saved);
    else if (token === '\x1bc') this.clear(this.rows.length);
    else if (token === '\r\n') {
      this.column = 0;
      this.feed();
    } else if (token === '\n') this.feed();
    else if (token === '\r') this.column = 0;
    else if (token === '\b') this.column = Math.max(0, this.column - 1);
    else if ((token >= ' ' && token !== '\x7f') || token[0] === '\t') this.put(token);
  }

  control(final, parameters) {
    if (parameters.startsWith('?')) {
      if (/^\?(1049|1047|47)$/.test(parameters) && (final === 'h' || final === 'l')) this.alternate(final === 'h');
      return;
    }
    if (final === 'm') {
      this.style = restyle(this.style, parameters);
      return;
    }
    const numbers = parameters.split(';').map((part) => Number(part || 0));
    CONTROLS[final]?.(this, Math.max(1, numbers[0] || 0), numbers);
  }

  /** Programs that take the whole screen leave it as it was. */
  alternate(isOn) {
    if (isOn === Boolean(this.main)) return;
    if (isOn) {
      this.main = { rows: this.rows, row: this.row, column: this.column };
      for (const row of this.rows) row.node?.remove();
      const count = this.rows.length;
      this.rows = [];
      this.clear(count);
    } else {
      for (const row of this.rows) row.node?.remove();
      const { rows, row, column } = this.main;
      this.main = null;
      for (const one of rows) [one.node, one.isChanged] = [null, true];
      [this.rows, this.row, this.column, this.top, this.bottom] = [rows, row, column, 0, null];
    }
  }

  move(row, column) {
    this.row = clamp(row, 0, ROWS_MAX - 1);
    this.column = clamp(column, 0, COLUMNS_MAX - 1);
    while (this.rows.length <= this.row) this.rows.push(this.newRow());
  }

  /** Lines leave the region at its top; from the top of the main screen they stay above it. */
  scroll(count) {
    const { last } = this;
    for (let i = 0; i < Math.min(count, last - this.top + 1); i++) {
      const [gone] = this.rows.splice(this.top, 1);
      if (this.top === 0 && !this.main) this.keep(gone);
      else gone.node?.remove();
      this.rows.splice(last, 0, this.newRow());
    }
  }

  /** The line stays in the pane, above the first one of the grid. */
  keep(row) {
    const first = this.rows.find((one) => one.node?.parentNode === this.pane);
    this.drawRow(row);
    if (row.node.parentNode !== this.pane) this.pane.insertBefore(row.node, first?.node ?? null);
  }

  scrollBack(count) {
    const { last } = this;
    for (let i = 0; i < Math.min(count, last - this.top + 1); i++) {
      const [gone] = this.rows.splice(last, 1);
      gone.node?.remove();
      this.rows.splice(this.top, 0, this.newRow());
    }
  }

  feed() {
    if (this.row === this.last) this.scroll(1);
    else this.move(this.row + 1, this.column);
  }

  reverseFeed() {
    if (this.row === this.top) this.scrollBack(1);
    else this.move(this.row - 1, this.column);
  }

  change(row = this.row) {
    this.rows[row].isChanged = true;
    return this.rows[row].cells;
  }

  put(text) {
    const cells = this.change();
    for (const letter of text) {
      if (letter === '\t') {
        this.column = clamp((this.column >> 3) * 8 + 8, 0, COLUMNS_MAX - 1);
        continue;
      }
      while (cells.length < this.column) cells.push([' ', {}]);
      cells[this.column] = [letter, this.style];
      this.column = Math.min(this.column + 1, COLUMNS_MAX - 1);
    }
  }

  eraseLine(what) {
    const cells = this.change();
    if (what !== 1) cells.length = Math.min(cells.length, what === 0 ? this.column : 0);
    else for (let i = 0; i <= this.column && i < cells.length; i++) cells[i] = [' ', {}];
  }

  eraseScreen(what) {
    const [from, to] = what === 0 ? [this.row + 1, this.rows.length] : what === 1 ? [0, this.row] : [0, this.rows.length];
    for (let i = from; i < to; i++) this.change(i).length = 0;
    if (what < 2) this.eraseLine(what);
  }

  drawRow(row) {
    row.node ??= h('div', { class: 'line' });
    if (!row.isChanged) return;
    const parts = [];
    let run = '', style = null;
    for (const [letter, own] of row.cells) {
      if (own !== style && run) {
        parts.push(styledSpan(run, style));
        run = '';
      }
      style = own;
      run += letter;
    }
    if (run) parts.push(styledSpan(run, style));
    row.node.replaceChildren(...parts);
    row.isChanged = false;
  }

  /** The grid in order at the end of the pane, without the empty rows below its text. */
  draw() {
    let used = this.rows.length;
    while (used > this.row + 1 && this.rows[used - 1].cells.length === 0) used--;
    let before = null;
    for (let i = used - 1; i >= 0; i--) {
      this.drawRow(this.rows[i]);
      if (this.rows[i].node.parentNode !== this.pane || this.rows[i].node.nextSibling !== before) this.pane.insertBefore(this.rows[i].node, before);
      before = this.rows[i].node;
    }
    for (let i = used; i < this.rows.length; i++) this.rows[i].node?.remove();
    while (this.pane.childElementCount > LINES_MAX) this.pane.firstElementChild.remove();
  }
}

const CONTROLS = {
  A: (screen, n) => screen.move(screen.row - n, screen.column),
  B: (screen, n) => screen.move(Math.min(screen.row + n, screen.rows.length - 1), screen.column),
  C: (screen, n) => screen.move(screen.row, screen.column + n),
  D: (screen, n) => screen.move(screen.row, screen.column - n),
  E: (screen, n) => screen.move(Math.min(screen.row + n, screen.rows.length - 1), 0),
  F: (screen, n) => screen.move(screen.row - n, 0),
  G: (screen, n) => screen.move(screen.row, n - 1),
  H: (screen, n, [, column]) => screen.move(n - 1, Math.max(1, column || 1) - 1),
  f: (screen, n, [, column]) => screen.move(n - 1, Math.max(1, column || 1) - 1),
  d: (screen, n) => screen.move(n - 1, screen.column),
  J: (screen, n, [what]) => screen.eraseScreen(what),
  K: (screen, n, [what]) => screen.eraseLine(what),
  L: (screen, n) => insertRows(screen, n),
  M: (screen, n) => deleteRows(screen, n),
  P: (screen, n) => screen.change().splice(screen.column, n),
  '@': (screen, n) => screen.change().splice(screen.column, 0, ...Array.from({ length: Math.min(n, COLUMNS_MAX) }, () => [' ', {}])),
  X: (screen, n) => {
    const cells = screen.change();
    for (let i = screen.column; i < Math.min(screen.column + n, cells.length); i++) cells[i] = [' ', {}];
  },
  S: (screen, n) => screen.scroll(n),
  T: (screen, n) => screen.scrollBack(n),
  r: (screen, n, [, bottom]) => {
    if (bottom) screen.move(bottom - 1, 0);
    [screen.top, screen.bottom] = [n - 1, bottom ? clamp(bottom, n, ROWS_MAX) - 1 : null];
    screen.move(0, 0);
  },
  s: (screen) => { screen.saved = [screen.row, screen.column]; },
  u: (screen) => screen.move(...screen.saved),
};

function insertRows(screen, n) {
  const { top } = screen;
  screen.top = screen.row;
  screen.scrollBack(n);
  screen.top = top;
}

function deleteRows(screen, n) {
  const { last } = screen;
  for (let i = 0; i < Math.min(n, last - screen.row + 1); i++) {
    const [gone] = screen.rows.splice(screen.row, 1);
    gone.node?.remove();
    screen.rows.splice(last, 0, screen.newRow());
  }
}
