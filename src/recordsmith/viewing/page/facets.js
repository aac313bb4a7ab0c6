// Counts and histograms of features, which write into the filter, and the switches of the overlays.

import { button, count, el, Poll, settings, short, svg } from './dom.js';
import { clauseOf, rangeClause, valuesClause, withClause } from './filter.js';
import { swatch } from './gallery.js';
import { overlays } from './overlay.js';

const [WIDTH, HEIGHT] = [220, 48];
const SHOWN_CLASSES = 100;

export class Facets {
  /** `filter(where)` is called when a facet changes the filter. */
  constructor(root, filter) {
    Object.assign(this, { root, filter, all: null, some: null, wholePoll: new Poll(), poll: new Poll() });
  }

  /** Show the facets of a selection; the counts of the whole split stay behind those of the filter. */
  show(split, where) {
    if (this.all && split === this.split && where === this.where) return;
    this.where = where;
    if (split !== this.split || !this.all) {
      this.split = split;
      this.all = null;
      this.wholePoll.run('facets', { split }, (answer) => {
        this.all = answer;
        this.draw();
      });
    }
    this.some = null;
    if (where) {
      this.poll.run('facets', { split, where }, (answer) => {
        this.some = answer.error ? null : answer;
        this.draw();
      });
    } else this.poll.stop();
    this.draw();
  }

  draw() {
    if (!this.all) return;
    if (this.root.contains(document.activeElement)) this.focused = document.activeElement.dataset.focus;
    const { facets = [], scanned, total, is_complete: isComplete, error } = this.all;
    this.root.replaceChildren(
      el('p', { class: 'quiet' }, error ? error.message : !facets.length && isComplete ? 'No feature has values to count.'
        : isComplete && scanned === total ? `${count(total)} records` : `of ${count(scanned)} of ${count(total)} records`),
      ...facets.map((facet) => this.drawFacet(facet)));
    if (this.focused) this.root.querySelector(`[data-focus="${CSS.escape(this.focused)}"]`)?.focus();
    this.focused = null;
  }

  drawFacet(facet) {
    const other = this.some?.facets.find(({ key }) => key === facet.key);
    const clause = clauseOf(this.where, facet.key);
    const isOpen = settings.read(`facet.${facet.key}`, true);
    return el('details', { open: isOpen, ontoggle: ({ target }) => settings.write(`facet.${facet.key}`, target.open) },
      el('summary', {}, el('span', { class: 'key' }, facet.key),
        clause && button('×', `Remove the condition on ${facet.key}`, (event) => {
          event.preventDefault();
          this.filter(withClause(this.where, facet.key, ''));
        }, { class: 'remove' })),
      facet.kind === 'histogram' ? this.drawHistogram(facet, other) : this.drawValues(facet, other, clause),
      facet.missing > 0 && this.drawValue(facet.key, 'missing', facet.missing, null, facet.missing, clause.startsWith('missing('),
        () => this.filter(withClause(this.where, facet.key, clause ? '' : `missing(${facet.key})`))));
  }

  drawValues(facet, other, clause) {
    const values = facet.values ?? [];
    const most = Math.max(1, ...values.map((value) => value.count));
    const counts = new Map(other?.values.map((value) => [value.value, value.count]));
    const chosen = values.filter(({ value }) => clause && isIn(clause, facet.key, value)).map(({ value }) => value);
    const more = (facet.distinct ?? values.length) - values.length;
    return el('div', { class: 'values' }, ...values.map(({ value, text, count: number }) => {
      const isChosen = chosen.includes(value);
      return this.drawValue(facet.key, text ?? String(value), number, this.some ? counts.get(value) ?? 0 : null, most, isChosen, () => {
        const next = isChosen ? chosen.filter((one) => one !== value) : [...chosen, value];
        this.filter(withClause(this.where, facet.key, valuesClause(facet.key, next)));
      });
    }), more > 0 && el('p', { class: 'quiet' }, `and ${count(more)} more`));
  }

  drawValue(key, text, whole, part, most, isChosen, onclick) {
    const bar = (number, name) => {
      const node = el('i', { class: name });
      node.style.width = `${(100 * number) / most}%`;
      return node;
    };
    return el('button', { type: 'button', class: 'value', 'aria-pressed': String(isChosen), 'data-focus': `${key}=${text}`, onclick },
      bar(whole, 'bar whole'), bar(part ?? whole, 'bar part'),
      el('span', { class: 'name' }, text || '(empty)'), el('span', { class: 'number' }, count(part ?? whole)));
  }

  drawHistogram(facet, other) {
    const { edges, counts } = facet;
    const most = Math.max(1, ...counts);
    const step = WIDTH / counts.length;
    const bars = (numbers, name) => numbers.map((number, index) => {
      const height = number ? Math.max(1, (number / most) * (HEIGHT - 2)) : 0;
      return svg('rect', { x: index * step, y: HEIGHT - height, width: Math.max(0.5, step - 1), height, class: name });
    });
    const brush = svg('rect', { y: 0, height: HEIGHT, width: 0, class: 'brush' });
    const sameBins = other && other.edges?.length === edges.length && other.edges[0] === edges[0] && other.edges.at(-1) === edges.at(-1);
    const low = el('input', { type: 'number', step: 'any', placeholder: short(edges[0]), 'aria-label': `${facet.key} from`, 'data-focus': `${facet.key}>` });
    const high = el('input', { type: 'number', step: 'any', placeholder: short(edges.at(-1)), 'aria-label': `${facet.key} to`, 'data-focus': `${facet.key}<` });
    const range = /^(\S+) <= .* <=? (\S+)$/.exec(clauseOf(this.where, facet.key));
    if (range) [low.value, high.value] = [range[1], range[2]];
    const apply = (from, to, isLast) => this.filter(withClause(this.where, facet.key, rangeClause(facet.key, from, to, isLast)));
    const typed = () => apply(low.value || edges[0], high.value || edges.at(-1), true);
    [low, high].forEach((input) => input.addEventListener('change', typed));
    const root = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'histogram', role: 'img', 'aria-label': `Histogram of ${facet.key}`, preserveAspectRatio: 'none' },
      ...bars(counts, other ? 'whole' : 'part'), ...(sameBins ? bars(other.counts, 'part') : []), brush);
    let from = null;
    const bin = (event) => {
      const { left, width } = root.getBoundingClientRect();
      return Math.max(0, Math.min(counts.length - 1, Math.floor(((event.clientX - left) / width) * counts.length)));
    };
    const draw = (a, b) => {
      brush.setAttribute('x', Math.min(a, b) * step);
      brush.setAttribute('width', (Math.abs(a - b) + 1) * step);
    };
    if (range) {
      const at = (value) => ((value - edges[0]) / (edges.at(-1) - edges[0] || 1)) * WIDTH;
      brush.setAttribute('x', Math.max(0, at(range[1])));
      brush.setAttribute('width', Math.max(2, at(range[2]) - Math.max(0, at(range[1]))));
    }
    root.addEventListener('pointerdown', (event) => {
      root.setPointerCapture(event.pointerId);
      draw((from = bin(event)), from);
    });
    root.addEventListener('pointermove', (event) => from !== null && draw(from, bin(event)));
    root.addEventListener('pointerup', (event) => {
      const [first, last] = [from, bin(event)].sort((a, b) => a - b);
      from = null;
      apply(edges[first], edges[last + 1], last === counts.length - 1);
    });
    return el('div', {}, root, el('div', { class: 'range' }, low, '–', high));
  }
}

/** Whether a clause that a facet wrote chooses a value. */
function isIn(clause, key, value) {
  const alone = valuesClause(key, [value]);
  if (clause === alone) return true;
  const text = alone.slice(alone.indexOf(' == ') + 4);
  const inner = /^.* in \((.*)\)$/s.exec(clause)?.[1] ?? '';
  return [`${text},`, `, ${text},`].some((part, index) => (index ? `${inner},`.includes(part) : `${inner},`.startsWith(part)));
}

/** The switches of boxes and masks, and of each class that has been seen. */
export function drawOverlays(root, change) {
  const check = (name, text) => el('label', { class: 'check' },
    el('input', { type: 'checkbox', checked: overlays[name], onchange: ({ target }) => change({ [name]: target.checked }) }), text);
  const classes = [...overlays.seen].sort(([a], [b]) => a - b);
  const toggle = (label) => {
    if (!overlays.hidden.delete(label)) overlays.hidden.add(label);
    change({});
  };
  const isAll = overlays.hidden.size === 0;
  const isOpen = root.querySelector('details')?.open ?? settings.read('overlays.open', innerWidth > 700);
  const focus = root.contains(document.activeElement) && document.activeElement.dataset.focus;
  root.replaceChildren(el('details', { open: isOpen, ontoggle: ({ target }) => settings.write('overlays.open', target.open) },
    el('summary', {}, 'Overlays'),
    el('div', { class: 'switches' }, check('boxes', 'Boxes'), check('texts', 'Names'), check('masks', 'Masks'), check('outlines', 'Outlines')),
    el('label', { class: 'slider' }, 'Opacity', el('input', {
      type: 'range', min: 0, max: 1, step: 0.05, value: overlays.opacity, 'data-focus': 'opacity', oninput: ({ target }) => change({ opacity: Number(target.value) }, false),
    })),
    classes.length > 1 && el('div', { class: 'classes', role: 'group', 'aria-label': 'Classes' },
      button(isAll ? 'Hide all' : 'Show all', isAll ? 'Hide all classes' : 'Show all classes', () => {
        overlays.hidden = new Set(isAll ? classes.map(([label]) => label) : []);
        change({});
      }, { class: 'link', 'data-focus': 'all' }),
      ...classes.slice(0, SHOWN_CLASSES).map(([label, text]) => el('button', {
        type: 'button', class: 'class', 'aria-pressed': String(!overlays.hidden.has(label)), 'data-focus': `class-${label}`, onclick: () => toggle(label),
      }, swatch(label), text || String(label))),
      classes.length > SHOWN_CLASSES && el('p', { class: 'quiet' }, `and ${count(classes.length - SHOWN_CLASSES)} more`))));
  if (focus) root.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}
