// Counts and histograms of features, which write into the filter, and the switches of the overlays.

import { breakable, button, count, el, link, Poll, quiet, settings, short, svg } from './dom.js';
import { clauseOf, keyText, literalsOf, rangeClause, valuesClause, withClause } from './filter.js';
import { swatch } from './gallery.js';
import { overlays } from './overlay.js';

const [WIDTH, HEIGHT] = [220, 48];
const SHOWN_CLASSES = 100;

/** Replace what is in an element; what had the focus keeps it. */
function redraw(root, ...children) {
  const focus = root.contains(document.activeElement) && document.activeElement.dataset.focus;
  root.replaceChildren(...children);
  if (focus) root.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

export class Facets {
  /** `filter(edit)` is called when a facet changes the filter, with a function of what the filter is by then. */
  constructor(root, filter) {
    Object.assign(this, { root, filter, wholePoll: new Poll(), poll: new Poll() });
  }

  /** Show the facets of a selection; the counts of the whole split stay behind those of the filter. */
  show(split, where) {
    if (split === this.split && where === this.where) return;
    if (split !== this.split) {
      this.whole = null;
      this.wholePoll.run('facets', { split }, (whole) => this.draw({ whole }));
    }
    Object.assign(this, { split, where, part: null });
    this.poll.stop();
    if (where) this.poll.run('facets', { split, where }, (part) => this.draw({ part: part.error ? null : part }));
    this.draw({});
  }

  draw(answers) {
    Object.assign(this, answers);
    if (!this.whole) return;
    clearTimeout(this.waiting);
    if (this.root.matches(':active')) {  // a click or a drag ends on the element where it began
      this.waiting = setTimeout(() => this.draw({}), 100);
      return;
    }
    const { facets = [], scanned, total, is_complete: isComplete, error } = this.whole;
    const about = error?.message ?? (isComplete && !facets.length ? 'No feature has values to count.' : scanned === total ? `Counts of ${count(total, 'record')}` : `Counts of the ${isComplete ? 'readable' : 'first'} ${count(scanned)} of ${count(total, 'record')}`);
    redraw(this.root, quiet(about), ...facets.map((facet) => this.drawFacet(facet)));
  }

  drawFacet(facet) {
    const { key } = facet;
    const clause = clauseOf(this.where, key);
    const change = (edit) => this.filter((where) => withClause(where, key, edit(clauseOf(where, key))));
    const part = this.part?.facets.find((other) => other.key === key);
    const isMissing = clause.startsWith('missing(');
    return el('details', { open: settings.read(`facet.${key}`, true), ontoggle: ({ target }) => settings.write(`facet.${key}`, target.open) },
      el('summary', {}, breakable(key)), facet.is_complete && !this.whole.is_complete && quiet('of all records'), clause && link('Remove the condition', '', () => change(() => '')),
      facet.kind === 'histogram' ? this.drawHistogram(facet, part, clause, change) : this.drawValues(facet, part, clause, change),
      facet.missing > 0 && this.drawValue(key, '(missing)', facet.missing, this.part && (part?.missing ?? 0), facet.missing, isMissing, () => change((now) => (now.startsWith('missing(') ? '' : `missing(${keyText(key)})`))));
  }

  drawValues({ key, values, distinct = values.length }, part, clause, change) {
    const most = Math.max(1, ...values.map((value) => value.count));
    const counts = new Map(part?.values?.map((value) => [value.literal, value.count]));
    const chosen = literalsOf(clause);
    const toggle = (literal) => change((now) => {
      const others = literalsOf(now).filter((one) => one !== literal);
      return valuesClause(key, others.length < literalsOf(now).length ? others : [...others, literal]);
    });
    const rows = values.map(({ literal, text, count: number }) =>
      this.drawValue(key, overlays.nameOf(key, literal) || text, number, this.part && (counts.get(literal) ?? 0), most, chosen.includes(literal), () => toggle(literal)));
    return el('div', {}, rows, distinct > values.length && quiet(`and ${count(distinct - values.length)} more`));
  }

  drawValue(key, text, whole, part, most, isChosen, onclick) {
    const bars = [el('i', { class: 'whole' }), el('i', { class: 'part' })];
    [whole, part ?? whole].forEach((number, at) => (bars[at].style.width = `${(100 * number) / most}%`));
    return el('button', { type: 'button', class: 'value', 'aria-pressed': String(isChosen), 'data-focus': `${key}=${text}`, onclick },
      bars, el('span', { class: 'name' }, text || '(empty)'), el('span', {}, count(part ?? whole)));
  }

  drawHistogram({ key, edges, counts }, part, clause, change) {
    const most = Math.max(1, ...counts);
    const step = WIDTH / counts.length;
    const bars = (numbers, name) => numbers.map((number, index) => {
      const height = number && Math.max(1, (number / most) * (HEIGHT - 2));
      return svg('rect', { x: index * step, y: HEIGHT - height, width: Math.max(0.5, step - 1), height, class: name });
    });
    const brush = svg('rect', { y: 0, height: HEIGHT, width: 0, class: 'brush' });
    const root = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'histogram', role: 'img', 'aria-label': `Histogram of ${key}`, preserveAspectRatio: 'none' },
      bars(counts, this.part ? 'whole' : 'part'), part?.counts?.length === counts.length && bars(part.counts, 'part'), brush);
    const range = /^(\S+) <= .* <=? (\S+)$/.exec(clause);
    const draw = (a, b) => Object.entries({ x: Math.min(a, b), width: Math.max(2, Math.abs(a - b)) }).forEach(([name, value]) => brush.setAttribute(name, value));
    if (range) draw(...[range[1], range[2]].map((value) => Math.max(0, Math.min(1, (value - edges[0]) / (edges.at(-1) - edges[0] || 1))) * WIDTH));
    const bin = (event) => {
      const { left, width } = root.getBoundingClientRect();
      return Math.max(0, Math.min(counts.length - 1, Math.floor(((event.clientX - left) / width) * counts.length)));
    };
    let from = null;
    root.addEventListener('pointerdown', (event) => {
      root.setPointerCapture(event.pointerId);
      from = bin(event);
    });
    root.addEventListener('pointermove', (event) => from !== null && draw(Math.min(from, bin(event)) * step, (Math.max(from, bin(event)) + 1) * step));
    root.addEventListener('pointerup', (event) => {
      const [first, last] = [from, bin(event)].sort((a, b) => a - b);
      change(() => rangeClause(key, edges[first], edges[last + 1], last === counts.length - 1));
    });
    const inputs = [0, 1].map((at) => el('input', { type: 'number', step: 'any', value: range?.[at + 1], placeholder: short(edges.at(-at)), 'aria-label': `${key} ${at ? 'to' : 'from'}`,
      'data-focus': `${key}${at}`, onchange: () => change(() => rangeClause(key, inputs[0].value || edges[0], inputs[1].value || edges.at(-1), true)) }));
    return el('div', {}, root, el('div', { class: 'range' }, inputs[0], '–', inputs[1]));
  }
}

/** The switches of boxes and masks, and of each class that has been seen. */
export function drawOverlays(root, change) {
  const check = (name, text) => el('label', { class: 'check' },
    el('input', { type: 'checkbox', checked: overlays[name], 'data-focus': name, onchange: ({ target }) => change({ [name]: target.checked }) }), text);
  const classes = [...overlays.seen].sort(([a], [b]) => a - b);
  const hide = (hidden) => change({ hidden: new Set(hidden) });
  const isAll = overlays.hidden.size === 0;
  const isOpen = root.querySelector('details')?.open ?? true;
  redraw(root, el('details', { open: isOpen }, el('summary', {}, 'Overlays'),
    el('div', { class: 'switches' }, check('boxes', 'Boxes'), check('points', 'Points'), check('texts', 'Labels'), check('masks', 'Masks'), check('outlines', 'Outlines')),
    el('label', { class: 'switches' }, 'Opacity', el('input', { type: 'range', min: 0, max: 1, step: 0.05, value: overlays.opacity, oninput: ({ target }) => change({ opacity: Number(target.value) }, false) })),
    classes.length > 1 && el('div', { class: 'classes', role: 'group', 'aria-label': 'Classes' }, link(isAll ? 'Hide all' : 'Show all', '', () => hide(isAll ? overlays.seen.keys() : [])),
      classes.slice(0, SHOWN_CLASSES).map(([label, text]) => {
        const isHidden = overlays.hidden.has(label);
        const toggle = () => hide(isHidden ? [...overlays.hidden].filter((one) => one !== label) : [...overlays.hidden, label]);
        return el('button', { type: 'button', class: 'class', 'aria-pressed': String(!isHidden), 'data-focus': `class-${label}`, onclick: toggle }, swatch(label), text || String(label));
      }), classes.length > SHOWN_CLASSES && quiet(`and ${count(classes.length - SHOWN_CLASSES)} more`))));
}
