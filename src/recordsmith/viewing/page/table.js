// A table of any number of records: the rows of the gallery's scrolling, and columns that are chosen and sorted.

import { count, el, getLines } from './dom.js';
import { Gallery } from './gallery.js';
import { overlays } from './overlay.js';
import { textOf } from './record.js';

const [ROW, FIRST, NUMBER, TEXT, LETTER] = [28, 84, 96, 200, 7];  // CSS pixels
const MAX_LETTERS = 200;

export class Table extends Gallery {
  /** actions: those of a gallery, and sort(key). */
  constructor(scroller, actions) {
    super(scroller, actions);
    Object.assign(this, { gap: 0, above: ROW, name: 'row', keys: [] });
    this.header = el('div', { class: 'row header', role: 'row', 'aria-rowindex': 1 });
    scroller.prepend(this.header);
  }

  /** Show these features, of which the view is sorted by `sort`; `-` before it is descending. */
  setColumns(features, sort) {
    this.keys = features.map(({ key }) => key);
    this.widths = [FIRST, ...features.map(({ key, kind }) => Math.max(key.length * LETTER + 30, kind === 'bytes' ? TEXT : NUMBER))];
    const order = (key) => (sort === key ? 'ascending' : sort === `-${key}` ? 'descending' : 'none');
    this.header.replaceChildren(...['record', ...this.keys].map((key, at) => this.sized(el('div', { class: at && features[at - 1].kind !== 'bytes' ? 'cell number' : 'cell', role: 'columnheader', 'aria-colindex': at + 1, 'aria-sort': at ? order(key) : null },
      at ? el('button', { type: 'button', class: 'link', title: `Sort by ${key}`, tabindex: -1, onclick: () => this.actions.sort(key) }, key, { ascending: ' ↑', descending: ' ↓' }[order(key)]) : key), at)));
    this.scroller.setAttribute('aria-colcount', this.keys.length + 1);
  }

  sized(node, column) {
    node.style.width = `${this.widths[column]}px`;
    return node;
  }

  measure() {
    this.width = Math.max(this.scroller.clientWidth, this.widths.reduce((a, b) => a + b));
    Object.assign(this, { columns: 1, pitch: this.width, row: ROW });
    this.header.style.width = this.spacer.style.width = `${this.width}px`;
    this.scroller.setAttribute('aria-rowcount', this.total + 1);
  }

  fetch(start, number, options) {
    return getLines('rows', { ...this.selection, start, count: number, columns: JSON.stringify(this.keys) }, options);
  }

  makeTile(place) {
    const node = el('div', { class: 'row loading', role: 'row', id: `row-${place}`, 'aria-rowindex': place + 2, 'data-place': place }, this.sized(el('div', { class: 'cell', role: 'gridcell' }, '…'), 0));
    const row = this.tiles.get(place);
    row ? this.fillTile(node, row) : this.markTile(node, row, place);
    return node;
  }

  fillTile(node, row) {
    const { position, problem, cells = [], place } = row;
    const texts = problem ? [problem.problem ? `${problem.defect}: ${problem.problem}` : problem.message] : cells.map((cell, at) => this.textOf(cell, this.keys[at]));
    node.classList.remove('loading');
    node.replaceChildren(...[position === null ? 'none' : count(position), ...texts].map((text, at) => {
      const isNumber = !problem && at > 0 && cells[at - 1] && cells[at - 1].kind !== 'bytes';
      const cell = el('div', { class: problem && at ? 'cell bad' : isNumber ? 'cell number' : 'cell', role: 'gridcell', 'aria-colindex': at + 1, title: text.length > 20 && text }, text);
      return problem && at ? cell : this.sized(cell, at);
    }));
    this.markTile(node, row, place);
  }

  textOf(cell, key) {
    const { values = [], count: total = values.length } = cell ?? {};
    const name = (value) => overlays.nameOf(key, value);
    const text = values.map((value) => [textOf(value), name(value)].filter(Boolean).join(' ')).join(', ').slice(0, MAX_LETTERS);
    return total > values.length ? `${text}, … ${count(total)} values` : text;
  }

  onKey(event) {
    const by = { ArrowLeft: -80, ArrowRight: 80 }[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return super.onKey(event);
    this.scroller.scrollLeft += by;
    event.preventDefault();
  }

  onHover() {}
}
