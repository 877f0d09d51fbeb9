// SPDX-License-Identifier: MIT
// Elements without a framework. Text from jobs and users becomes text nodes only: nothing here parses HTML, and the
// page's policy (require-trusted-types-for) refuses whatever would.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: h('button', { class: 'x', onclick: act }, 'text', child). */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** The same for SVG. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Sets the text of an element, only if it changed: an open selection and screen readers are left alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Replaces the children of `parent` when `signature` differs from the last one. */
export function redraw(parent, signature, make) {
  const text = JSON.stringify(signature);
  if (parent.signature === text) return;
  parent.signature = text;
  parent.replaceChildren(...[make()].flat(Infinity).filter(Boolean));
}

/**
 * Makes the children of `parent` those of `items`, in order. An item keeps its element, and with it focus and
 * selection, as long as its key is there; the element is made anew when the item's signature changes.
 */
export function syncRows(parent, items, keyOf, signatureOf, make) {
  const old = parent.keyedRows ?? new Map();
  const rows = new Map(), kept = new Set(items.map(keyOf));
  // First, so that what is below stays in its place: an element that is moved loses the focus.
  for (const [key, row] of old) if (!kept.has(key)) row.node.remove();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    const signature = JSON.stringify(signatureOf(item));
    let row = old.get(key);
    if (!row || row.signature !== signature) {
      const node = make(item);
      const hadFocus = row?.node.contains(document.activeElement);
      if (row) {
        if (place === row.node) place = node;
        row.node.replaceWith(node);
        if (hadFocus) (node.matches('[tabindex]') ? node : node.querySelector('a,button,[tabindex]'))?.focus();
        if (row.node.classList.contains('chosen')) node.classList.add('chosen');
      }
      row = { node, signature };
    }
    if (row.node !== place) {
      const focused = row.node.contains(document.activeElement) ? document.activeElement : null;
      parent.insertBefore(row.node, place);
      focused?.focus();
    } else {
      place = place.nextSibling;
    }
    rows.set(key, row);
  }
  parent.keyedRows = rows;
}
