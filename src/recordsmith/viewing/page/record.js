// One record: its image with zoom, boxes and mask, every feature, the file around it, and its bytes.

import { breakable, button, bytes, copyButton, count, el, explain, getJson, getText, link, place as setPlace, quiet, short, svg, url } from './dom.js';
import { contain, curve, drawBoxes, overlays, paintMask, readMask } from './overlay.js';

const [FOLDED, LETTERS] = [12, 400];  // values and characters of a feature that are shown at first
const CHUNK = 1000;
const PART = 64;  // steps and images that are loaded together
const MAX_COLUMNS = 40;
const [MAX_ZOOM, BINS] = [64, 64];

export class RecordView {
  /** actions: close(), step(by), mark(record), isMarked(position), command(position), change(overlays). */
  constructor(root, actions) {
    Object.assign(this, { root, actions });
    new ResizeObserver(() => this.stage && this.fit()).observe(root);
  }

  async open(position, selection) {
    this.controller?.abort();
    const { signal } = (this.controller = new AbortController());
    Object.assign(this, { position, signal });
    this.root.hidden = false;
    try {
      const record = await getJson(`record/${position}`, selection, this);
      if (!signal.aborted) this.show(record);
    } catch (error) {
      if (signal.aborted) return;
      this.record = this.stage = null;
      this.root.replaceChildren(this.bar({ position }), alertOf(explain(error)));
    }
    this.root.focus();
  }

  close() {
    this.controller?.abort();
    Object.assign(this, { record: null, stage: null }).root.replaceChildren();
    this.root.hidden = true;
  }

  show(record) {
    Object.assign(this, { record, stage: null, view: null, labels: null });
    const { images, image_counts: imageCounts, sections, defect, orientation, fields, left_out: leftOut, step_count: steps } = record;
    const facts = el('div', { class: 'facts', tabindex: 0, role: 'region', 'aria-label': 'Features' });
    this.root.setAttribute('aria-label', `Record ${record.position}`);
    this.root.replaceChildren(this.bar(record), el('div', { class: images.length ? 'body' : 'body alone' }, images.length && this.makeStage(images), facts));
    if (defect) facts.append(record.payload === 'other' ? quiet(defect.message) : damageOf(defect));
    if (orientation > 1) facts.append(quiet(`Shown as stored, which is what a model reads. The EXIF orientation ${orientation} is not applied.`));
    if (leftOut.boxes) facts.append(quiet(`${count(leftOut.boxes)} more boxes, which are not drawn`));
    for (const [key, total] of Object.entries(imageCounts)) {
      if (total > 1) facts.append(this.filmStrip(key, total, images.filter((image) => image.key === key)));
    }
    for (const [name, section] of Object.entries(sections)) {
      const more = leftOut[name] && quiet(`and ${count(leftOut[name])} more features, which are not shown`);
      if (name === 'feature_lists') facts.append(fold(count(steps, 'step'), true, () => el('div', {}, this.curves(name), this.rows('Step', steps, sections, (part) => stepsOf(part[name])), more)));
      else if (name === 'examples') facts.append(fold(`Ranking list of ${count(steps, 'Example')}`, true, () => this.rows('Example', steps, sections, (part) => part[name])));
      else facts.append(fold(name === 'context' ? 'Context' : 'Features', true, () => el('div', {}, this.features(name, section), more)));
    }
    if (fields?.length) facts.append(fold('Fields of the message', true, () => this.fields(fields)));
    if (images.length) facts.append(fold('Histogram of the pixels', false, () => this.histogram()));
    facts.append(fold('File', !images.length, () => this.file(record)));
    if (record.size_bytes !== null) facts.append(fold('Bytes', Boolean(defect), () => this.hex()));
  }

  bar(record) {
    const { step, close, mark } = this.actions;
    const file = record.shard?.split('/').pop();
    const about = [record.name && `record ${count(record.position)}`, file && `${file} #${count(record.record)}`, !file?.includes(record.split) && record.split,
      record.size_bytes != null && bytes(record.size_bytes)];
    this.marker = el('button', { type: 'button', class: 'marker', title: 'Mark (x)', onclick: () => mark(record) });
    this.showMark(record.position);
    return el('div', { class: 'bar' },
      button('✕', 'Close (Escape)', close), button('←', 'Previous record (←)', () => step(-1)), button('→', 'Next record (→)', () => step(1)),
      el('h2', {}, record.name || `Record ${count(record.position)}`), quiet(about.filter(Boolean).join(' · ')),
      el('span', { class: 'end' }, copyButton('Link', 'Copy a link to this record', () => location.href), this.marker));
  }

  showMark(position = this.record?.position) {
    const isMarked = this.actions.isMarked(position);
    this.marker?.setAttribute('aria-pressed', String(isMarked));
    if (this.marker) this.marker.textContent = isMarked ? '✓ Marked' : 'Mark';
  }

  // the image

  makeStage(images) {
    this.image = el('img', { alt: `Image of record ${this.position}`, draggable: 'false', onload: () => this.fit(),
      onerror: () => this.stage?.append(alertOf(`${this.shown.key} cannot be shown`)) });
    this.canvas = el('canvas', { class: 'mask' });
    this.boxes = svg('svg', { class: 'boxes', 'aria-hidden': 'true' });
    this.stage = el('div', { class: 'viewport', tabindex: 0, role: 'group', 'aria-label': 'Image: + and - zoom, 0 fits it, 1 shows its pixels, Shift and arrows move it' },
      this.image, this.canvas, this.boxes);
    this.zoomText = el('output', { class: 'quiet' });
    this.load(images[0]);
    if (this.record.has_mask) readMask(url(`mask/${this.position}`)).then((labels) => Object.assign(this, { labels }).paint(), () => {});
    for (const [, , , , label, text] of this.record.boxes ?? []) overlays.see(label, text);
    this.attachPointers();
    const firsts = images.filter(({ key }, at) => key !== images[at - 1]?.key);
    const choose = firsts.length > 1 && el('select', { 'aria-label': 'Image', onchange: ({ target }) => this.load(firsts[target.value]) },
      firsts.map(({ key }, at) => el('option', { value: at }, key)));
    this.switches = Object.entries({ boxes: ['Boxes (b)', this.record.boxes.length], points: ['Points (p)', this.record.boxes.some((box) => box[7])], texts: ['Labels (l)', this.record.boxes.length], masks: ['Masks (m)', this.record.has_mask] })
      .filter(([, [, isThere]]) => isThere).map(([name, [title]]) => button(title.split(' ')[0], title, () => this.actions.change({ [name]: !overlays[name] }), { 'data-switch': name }));
    return el('div', { class: 'left' }, this.stage, el('div', { class: 'zoom' },
      button('−', 'Zoom out (-)', () => this.zoom(0.8)), this.zoomText, button('+', 'Zoom in (+)', () => this.zoom(1.25)),
      button('Fit', 'Fit the image (0)', () => this.fit()), button('1:1', 'Show its pixels (1)', () => this.zoom(1 / this.view.scale)), choose, this.switches.length > 0 && el('span', { class: 'if-drawn', role: 'group', 'aria-label': 'Overlays' }, this.switches)));
  }

  /** Zoom by wheel, pinch and double click; pan by dragging. */
  attachPointers() {
    const pointers = new Map();
    const gap = ([a, b] = [...pointers.values()]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    this.stage.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), event);
    }, { passive: false });
    this.stage.addEventListener('pointerdown', (event) => {
      this.stage.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event);
    });
    this.stage.addEventListener('pointermove', (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      const before = pointers.size === 2 && gap();
      pointers.set(event.pointerId, event);
      if (before) this.zoom(gap() / before, event);
      else this.pan(event.clientX - last.clientX, event.clientY - last.clientY);
    });
    this.stage.addEventListener('lostpointercapture', ({ pointerId }) => pointers.delete(pointerId));
    this.stage.addEventListener('dblclick', (event) => (this.view.scale > this.fitted * 1.01 ? this.fit() : this.zoom(1 / this.view.scale, event)));
  }

  load(image) {
    this.shown = image;
    this.image.src = url(`image/${this.position}`, { key: image.key, index: image.index });
  }

  fit() {
    if (!this.stage || !this.image.naturalWidth) return;  // closed before its image was there
    this.size = this.shown;  // as stored: the natural size of the element is that after EXIF
    const { left, top, width } = contain(this.size.width, this.size.height, { width: this.stage.clientWidth, height: this.stage.clientHeight });
    this.fitted = width / this.size.width;
    this.view = { scale: this.fitted, left, top };
    this.paint();
  }

  /** Zoom about the pointer, or the middle. */
  zoom(by, event) {
    if (!this.view) return;
    const box = this.stage.getBoundingClientRect();
    const [x, y] = event ? [event.clientX - box.left, event.clientY - box.top] : [box.width / 2, box.height / 2];
    const scale = Math.max(Math.min(1, this.fitted / 2), Math.min(Math.max(MAX_ZOOM, this.fitted), this.view.scale * by));
    const ratio = scale / this.view.scale;
    this.view = { scale, left: x - (x - this.view.left) * ratio, top: y - (y - this.view.top) * ratio };
    this.paint();
  }

  pan(x, y) {
    if (this.view) Object.assign(this.view, { left: this.view.left + x, top: this.view.top + y });
    this.paint();
  }

  paint() {
    if (!this.view || !this.stage) return;
    for (const node of this.switches) node.setAttribute('aria-pressed', String(overlays[node.dataset.switch]));
    const { scale, left, top } = this.view;
    const area = { left, top, width: this.size.width * scale, height: this.size.height * scale };
    const isScene = this.shown === this.record.images[0];
    this.image.classList.toggle('pixels', scale >= 3);
    this.zoomText.textContent = `${Math.round(100 * scale)} %`;
    for (const node of [this.image, this.canvas]) setPlace(node, area);
    drawBoxes(this.boxes, isScene ? this.record.boxes : [], area, 12);
    this.canvas.hidden = !(this.labels && isScene);
    if (!this.canvas.hidden) paintMask(this.canvas, this.labels);
  }

  // the features

  features(name, section) {
    const curves = new Map(Object.entries(this.record.curves[name] ?? {}));
    return definitions(Object.entries(section).map(([key, feature]) => {
      const length = lengthOf(feature);
      return [[el('span', { class: 'key' }, breakable(key)), el('small', {}, `${feature.kind}${length > 1 ? ` × ${count(length)}` : ''}`)], this.values(key, feature, curves.get(key))];
    }));
  }

  values(key, feature, points) {
    const { values = [], kind } = feature;
    const total = lengthOf(feature);
    const join = (some) => some.map(textOf).join(kind === 'bytes' ? '\n' : ', ');
    const graph = points && curve(points, 320, 64, `curve of ${key}`);
    const few = kind === 'bytes' || graph ? FOLDED : 4 * FOLDED;
    const shown = join(values.slice(0, few));
    const text = el('pre', {}, shown.slice(0, LETTERS));
    if (total <= few && shown.length <= LETTERS && !values.some((value) => value?.text)) return [graph, text];
    let next = 0;
    text.append(' …');
    const more = link(total > 1 ? `Show all ${count(total)} values` : 'Show all', `Show more of ${key}`, async () => {
      const answer = await getJson(`values/${this.position}`, { key, start: next, count: CHUNK }, this).catch((error) => ({ values: [explain(error)] }));
      if (next === 0) text.textContent = '';
      text.append(`${next ? '\n' : ''}${join(answer.values)}`);
      next += answer.count ? answer.values.length : total;
      more.textContent = `Show more (${count(total - next)} left)`;
      more.hidden = next >= total;
    });
    return [graph, text, more];
  }

  curves(name) {
    return Object.entries(this.record.curves[name] ?? {}).map(([key, points]) => el('figure', {}, el('figcaption', { class: 'key' }, key), curve(points, 320, 64, `curve of ${key}`)));
  }

  /** A table of steps or Examples; `rowsOf` makes its rows of sections. */
  rows(title, total, sections, rowsOf) {
    const draw = (part, start) => this.table(rowsOf(part), title, start);
    return parts(`${title}s`, total, draw(sections, 0), async (start) => draw((await getJson(`steps/${this.position}`, { start }, this)).sections, start));
  }

  table(rows, title, start) {
    const uses = Map.groupBy(rows.flatMap((row) => Object.keys(row)), (name) => name);
    const names = [...uses].sort(([, a], [, b]) => b.length - a.length).map(([name]) => name).slice(0, MAX_COLUMNS);
    const cell = (feature) => {
      const text = (feature?.values ?? []).slice(0, FOLDED).map(textOf).join(', ').slice(0, 120);
      return el('td', {}, feature && lengthOf(feature) > FOLDED ? `${text} … ${count(lengthOf(feature))} values` : text);
    };
    const body = rows.map((row, at) => el('tr', {}, el('th', { scope: 'row' }, String(start + at)), names.map((name) => cell(row[name]))));
    return el('div', {}, el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `${title}s` }, el('table', {},
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, title), names.map((name) => el('th', { scope: 'col' }, name)))), el('tbody', {}, body))),
    uses.size > names.length && quiet(`and ${count(uses.size - names.length)} more features`));
  }

  filmStrip(key, total, frames) {
    const draw = (some) => el('div', { class: 'strip', tabindex: 0, role: 'group', 'aria-label': `Images of ${key}` },
      some.map((frame) => el('button', { type: 'button', 'aria-label': `Show image ${frame.index}`, onclick: () => this.load(frame) },
        el('img', { loading: 'lazy', alt: '', src: url(`image/${this.position}`, { key, index: frame.index }) }), el('small', {}, String(frame.index)))));
    return fold(`${key}: ${count(total)} images`, true, () => parts('Images', total, draw(frames), async (start) => draw((await getJson(`images/${this.position}`, { key, start }, this)).images)));
  }

  fields(fields) {
    return el('ul', { class: 'fields' }, fields.map(({ number, type, value, text, begins, size, fields: inner }) => el('li', {},
      el('b', {}, String(number)), el('small', {}, ` ${type} `), String(text ?? value ?? begins ?? ''), begins && el('small', {}, ` ${bytes(size)}`), inner && this.fields(inner))));
  }

  histogram() {
    const canvas = el('canvas', { width: Math.min(512, this.size.width), height: Math.min(512, this.size.height) });
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(this.image, 0, 0, canvas.width, canvas.height);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const bins = [0, 1, 2].map(() => new Array(BINS).fill(0));
    const sums = [0, 0, 0];
    for (let i = 0; i < data.length; i += i % 4 < 2 ? 1 : 2) {
      bins[i % 4][data[i] >> 2]++;
      sums[i % 4] += data[i];
    }
    const most = Math.max(1, ...bins.flat());
    const paths = bins.map((part, c) => svg('path', { class: 'rgb'[c], d: `M0 80${part.map((number, x) => `L${(x * 320) / (BINS - 1)} ${80 - 78 * Math.sqrt(number / most)}`).join('')}L320 80Z` }));
    return el('div', {}, svg('svg', { class: 'histogram pixels', viewBox: '0 0 320 80', preserveAspectRatio: 'none', role: 'img', 'aria-label': 'Histogram of red, green and blue' }, paths),
      quiet(`Mean of red, green and blue: ${sums.map((sum) => Math.round((4 * sum) / data.length)).join(', ')}. Heights are square roots of counts.`));
  }

  file({ shard, layers, record, offset, size_bytes: size, payload, checksums }) {
    const facts = { 'open it again': this.actions.command(this.position), shard, layers: layers?.join('\n'), 'record in the shard': count(record), 'byte offset': count(offset), size: size != null && `${count(size)} bytes`, payload,
      'checksum of the length': checksums?.length, 'checksum of the payload': checksums?.payload };
    return definitions(Object.entries(facts).filter(([, value]) => value).map(([name, value]) => [[name], [el('pre', {}, String(value))]]));
  }

  hex() {
    const text = el('pre', { class: 'hex', tabindex: 0, role: 'region', 'aria-label': 'Bytes of the record' });
    let next = 0;
    const more = link('Show more', 'Show more bytes', async () => {
      const lines = (await getText(`hex/${this.position}`, { start: next }, this).catch(explain)).split('\n').filter(Boolean);
      text.append(`${lines.join('\n')}\n`);
      next += 16 * lines.length;
      more.hidden = !lines.length || next >= this.record.size_bytes;
    });
    more.click();
    return el('div', {}, text, more);
  }

  /** Act on a key, and return whether it is one of this view. */
  onKey(event) {
    if (event.target.closest('select, input')) return false;
    const pans = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const { step, close, mark } = this.actions;
    const acts = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), Escape: close, x: () => this.record && mark(this.record),
      '+': () => this.zoom(1.25), '=': () => this.zoom(1.25), '-': () => this.zoom(0.8), 0: () => this.fit(), 1: () => this.zoom(1 / (this.view?.scale ?? 1)) };
    if (event.shiftKey && pans[event.key]) this.pan(...pans[event.key]);
    else if (acts[event.key]) acts[event.key]();
    else return false;
    return true;
  }
}

/** A part of something long, which begins with `first`, and how to see the others: `load(start)` makes them. */
function parts(what, total, first, load) {
  if (total <= PART) return first;
  let start = 0;
  const body = el('div', {}, first);
  const end = el('span', {});
  const go = async (to) => {
    start = Math.max(0, Math.min(total - 1, Math.trunc(to) || 0));
    body.replaceChildren(await load(start).catch((error) => alertOf(explain(error))));
    show();
  };
  const input = el('input', { type: 'number', min: 0, max: total - 1, 'aria-label': `First of the ${what} shown`, onchange: () => go(input.valueAsNumber) });
  const [previous, next] = [['←', -PART, 'Previous'], ['→', PART, 'Next']].map(([text, by, title]) => button(text, `${title} ${what}`, () => go(start + by)));
  const show = () => {
    input.value = start;
    end.textContent = `to ${count(Math.min(total, start + PART) - 1)} of ${count(total)}`;
    [previous.disabled, next.disabled] = [start === 0, start + PART >= total];
  };
  show();
  return el('div', {}, el('p', { class: 'parts' }, what, input, end, previous, next), body);
}

/** The rows of a table from lists of steps. */
const stepsOf = (lists) => Array.from({ length: Math.max(0, ...Object.values(lists).map((steps) => steps.length)) }, (_, step) =>
  Object.fromEntries(Object.entries(lists).map(([name, steps]) => [name, steps[step]])));

/** What is wrong with a record, where, and what to do. */
function damageOf({ defect, problem, path, record, offset, feature, found, expected, remedy, message }) {
  const where = [path, record != null && `record ${count(record)}`, offset != null && `byte ${count(offset)}`, feature && `feature ${feature}`].filter(Boolean).join(', ');
  const facts = { Problem: problem ?? message, Where: where, Found: found, Expected: expected, 'What to do': remedy || 'Run recordsmith verify for a report, and recordsmith salvage to keep the intact records.' };
  return el('section', { class: 'error', role: 'alert' }, el('h3', {}, defect || 'This record cannot be shown'), definitions(Object.entries(facts).filter(([, text]) => text).map(([term, text]) => [[term], [text]])));
}

const alertOf = (text) => el('p', { class: 'error', role: 'alert' }, text);
const lengthOf = (feature) => feature.count ?? feature.values.length;

export function textOf(value) {
  if (typeof value === 'number') return short(value);
  if (value === null || typeof value !== 'object') return String(value);
  if (value.image) return `${value.image.format}, ${value.image.width} × ${value.image.height}, ${bytes(value.size_bytes)}`;
  return value.text ? `${value.text} …` : `${bytes(value.size_bytes)}: ${value.tensor ?? value.begins}`;
}

/** A part that is made when it is opened. */
function fold(title, isOpen, make) {
  const node = el('details', { ontoggle: () => node.open && node.children.length === 1 && node.append(make()) }, el('summary', {}, title));
  node.open = isOpen;
  return node;
}

const definitions = (pairs) => el('dl', { class: 'features' }, pairs.map(([term, value]) => [el('dt', {}, term), el('dd', {}, value)]));
