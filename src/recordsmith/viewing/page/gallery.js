// Thumbnails of any number of records: only those on the screen are elements, and only those near it are fetched.

import { count, el, explain, getLines, place as setPlace, sleep, svg } from './dom.js';
import { colour, contain, curve, drawBoxes, overlays, paintMask, readMask } from './overlay.js';

const MAX_HEIGHT = 8e6;  // CSS pixels; browsers draw nothing in much higher elements
const [GAP, HEAD, CAPTION] = [8, 30, 36];
const BATCH = 120;  // tiles of a request
const [MAX_TILES, MAX_CHARS] = [3000, 40e6];  // that are kept
const SIZES = [96, 128, 192, 256, 384, 512];

export class Gallery {
  /** actions: open(place, tile), mark(tile), isMarked(position), loaded(problem). */
  constructor(scroller, actions) {
    Object.assign(this, { scroller, actions, size: 160, total: 0, current: 0, offset: 0, groups: null, parts: [], visible: [0, 0], chars: 0, gap: GAP, above: GAP, name: 'tile' });
    this.tiles = new Map();  // by place, the least recently used first
    this.nodes = new Map();
    this.spacer = el('div');
    this.layer = el('div', { class: 'layer' });
    scroller.append(this.spacer, this.layer);
    for (const [name, act] of Object.entries({ scroll: 'onScroll', keydown: 'onKey', click: 'onClick', pointermove: 'onHover' })) scroller.addEventListener(name, (event) => this[act](event));
    new ResizeObserver(() => this.layout()).observe(scroller);
  }

  /** Show another view; nothing of the one before stays. */
  reset(selection, current = 0) {
    this.request?.controller.abort();
    this.tiles.clear();
    this.clear();
    Object.assign(this, { selection, current, request: null, chars: 0, groups: null, total: 0, isFresh: true });
  }

  setTotal(total) {
    if (total === this.total && !this.isFresh) return;
    this.total = total;
    this.layout(this.isFresh ? this.current : null);
    if (total) this.isFresh = false;
  }

  setSize(size) {
    const before = this.pixels;
    this.size = size;
    this.layout(this.visible[0]);
    if (before < this.pixels) this.tiles.forEach((tile) => (tile.isCoarse = true));
  }

  setGroups(groups) {
    this.groups = groups.length ? groups : null;
    this.layout(this.current);
  }

  clear() {
    this.layer.replaceChildren();
    this.nodes.clear();
  }

  /** Place all rows again; the row of `anchor` comes to the top. */
  layout(anchor = null) {
    const room = this.scroller.clientWidth - 2 * GAP;
    if (room <= 0) return;
    this.measure(room);
    let top = this.above;
    const groups = (this.groups ?? [{ start: 0, text: null }]).filter((group) => group.start < this.total);
    this.parts = groups.map(({ start, text }, index) => {
      const part = { start, text, top, count: (groups[index + 1]?.start ?? this.total) - start, head: text === null ? 0 : HEAD };
      top += part.head + Math.ceil(part.count / this.columns) * this.row;
      return part;
    });
    this.height = top;
    this.spacer.style.height = `${Math.min(this.height, MAX_HEIGHT)}px`;
    this.clear();
    this.scrollTo(anchor === null ? this.offset : anchor && this.topOf(anchor));
    if (this.isFresh) this.load();
  }

  /** Set the number of columns and the size of a tile. */
  measure(room) {
    this.columns = Math.max(1, Math.floor((room + GAP) / (this.size + GAP)));
    this.pitch = (room + GAP) / this.columns;
    this.width = Math.floor(this.pitch - GAP);
    this.row = this.width + CAPTION + GAP;
    this.pixels = SIZES.find((size) => size >= this.width * Math.min(2, devicePixelRatio)) ?? SIZES.at(-1);
  }

  get maxOffset() { return Math.max(0, this.height - this.scroller.clientHeight); }

  /** Pixels of the content for each pixel of the scroll bar. */
  get scale() { return this.height > MAX_HEIGHT ? this.maxOffset / (MAX_HEIGHT - this.scroller.clientHeight) : 1; }

  /** The number of the last part whose field is at most a value. */
  partAt(field, value) {
    let [low, high] = [0, this.parts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.parts[middle][field] <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  topOf(place) {
    const part = this.parts[this.partAt('start', place)];
    return part ? part.top + part.head + Math.floor((place - part.start) / this.columns) * this.row : 0;
  }

  scrollTo(offset) {
    this.offset = Math.max(0, Math.min(offset, this.maxOffset));
    this.scroller.scrollTop = this.offset / this.scale;
    this.last = this.scroller.scrollTop;
    this.render();
  }

  onScroll() {
    const top = this.scroller.scrollTop;
    if (top === this.last) return;
    // a wheel or a finger moves by pixels, also where a pixel of the bar stands for many of the content
    const isNear = this.scale > 1 && Math.abs(top - this.last) < this.scroller.clientHeight;
    this.offset = Math.max(0, Math.min(isNear ? this.offset + top - this.last : top * this.scale, this.maxOffset));
    this.last = top;
    clearTimeout(this.settling);
    if (isNear) this.settling = setTimeout(() => this.scrollTo(this.offset), 200);
    this.render();
  }

  /** Make elements of the tiles on the screen, and remove the others. */
  render() {
    const low = Math.max(0, this.offset - this.row);
    const high = this.offset + this.scroller.clientHeight + this.row;
    const base = Math.floor(low / this.row) * this.row;
    const keep = new Set();
    const put = (key, make, area) => {
      keep.add(key);
      if (!this.nodes.has(key)) {
        this.nodes.set(key, make());
        this.layer.append(this.nodes.get(key));
      }
      setPlace(this.nodes.get(key), { ...area, top: area.top - base });
    };
    let [first, last] = [Infinity, 0];
    for (let index = this.partAt('top', low); this.parts[index]?.top < high; index++) {
      const { start, text, count: size, head, top } = this.parts[index];
      const inner = top + head;
      const stop = Math.min(size, Math.ceil((high - inner) / this.row) * this.columns);
      if (head) put(`head-${index}`, () => el('div', { class: 'head' }, el('b', {}, text), ` ${count(size)}`), { left: GAP, top });
      for (let at = Math.max(0, Math.floor((low - inner) / this.row)) * this.columns; at < stop; at++) {
        const area = { left: this.gap + (at % this.columns) * this.pitch, top: inner + Math.floor(at / this.columns) * this.row, width: this.width, height: this.row - this.gap };
        put(start + at, () => this.makeTile(start + at), area);
        [first, last] = [Math.min(first, start + at), Math.max(last, start + at + 1)];
      }
    }
    for (const [key, node] of this.nodes) {
      if (keep.has(key)) continue;
      node.remove();
      this.nodes.delete(key);
    }
    this.visible = first < last ? [first, last] : [0, 0];
    this.layer.style.transform = `translateY(${this.scroller.scrollTop - this.offset + base}px)`;
    this.scroller.setAttribute('aria-activedescendant', this.nodes.has(this.current) ? `${this.name}-${this.current}` : '');
    clearTimeout(this.loading);
    this.loading = setTimeout(() => this.load(), 16);
  }

  /** The first run of places whose tiles are not kept. */
  missing(start, stop) {
    const lacks = (place) => this.tiles.get(place)?.isCoarse ?? !this.tiles.has(place);
    const end = Math.min(stop, this.total);
    let first = Math.max(0, start);
    while (first < end && !lacks(first)) first++;
    let last = first;
    while (last < end && last - first < BATCH && lacks(last)) last++;
    return first < last ? [first, last] : null;
  }

  fetch(start, number, options) {
    return getLines('tiles', { ...this.selection, start, count: number, size: this.pixels }, options);
  }

  /** Fetch what is on the screen first, then a screen below and above it; drop requests for what has left it. */
  async load() {
    const [low, high] = this.visible;
    const urgent = this.missing(low, high);
    const run = urgent ?? this.missing(high, 2 * high - low) ?? this.missing(2 * low - high, low);
    if (!run || (this.request && (!urgent || (this.request.next < high && this.request.stop > low)))) return;
    this.request?.controller.abort();
    const [start, stop] = run;
    const controller = new AbortController();
    const request = (this.request = { next: start, stop, controller });
    try {
      for await (const tile of this.fetch(start, stop - start, controller)) {
        if (controller.signal.aborted) return;
        request.next = tile.place + 1;
        this.keep(tile);
      }
      for (let place = start; place < stop; place++) if (!this.tiles.has(place)) this.keep({ place, position: null, kind: 'none' });
      this.actions.loaded('');
    } catch (error) {
      if (controller.signal.aborted) return;
      this.actions.loaded(explain(error));
      await sleep(2000);
    }
    if (this.request !== request) return;
    this.request = null;
    this.load();
  }

  /** Keep a tile, drop the least recently used ones, and draw it if it is on the screen. */
  keep(tile) {
    const drop = (place) => {
      this.chars -= this.tiles.get(place)?.weight ?? 0;
      this.tiles.delete(place);
    };
    drop(tile.place);
    tile.weight = [tile.image, tile.mask, ...(tile.frames ?? [])].reduce((sum, part) => sum + (part?.length ?? 0), 500);
    this.tiles.set(tile.place, tile);
    this.chars += tile.weight;
    for (const place of this.tiles.keys()) {
      if ((this.tiles.size <= MAX_TILES && this.chars <= MAX_CHARS) || this.nodes.has(place)) break;
      drop(place);
    }
    const node = this.nodes.get(tile.place);
    if (node) this.fillTile(node, tile);
  }

  makeTile(place) {
    const props = { 'aria-label': `record at ${count(place)}, loading`, 'aria-setsize': this.total, 'aria-posinset': place + 1, 'data-place': place };
    const node = el('div', { class: 'tile loading', role: 'option', id: `tile-${place}`, ...props }, el('div', { class: 'stage' }));
    const tile = this.tiles.get(place);
    this.markTile(node, tile, place);
    if (!tile) return node;
    this.tiles.delete(place);
    this.tiles.set(place, tile);  // now the most recently used
    this.fillTile(node, tile);
    return node;
  }

  fillTile(node, tile) {
    const title = tile.name || (tile.position === null ? 'not available' : `record ${count(tile.position)}`);
    const stage = el('div', { class: 'stage' });
    stage.style.height = `${this.width}px`;
    node.classList.remove('loading');
    node.setAttribute('aria-label', [title, tile.caption, tile.problem?.message].filter(Boolean).join(', '));
    node.replaceChildren(stage, el('div', { class: 'caption' }, el('span', { class: 'name' }, title),
      el('span', { class: 'label' }, tile.label != null && swatch(tile.label), tile.caption)), el('span', { class: 'mark', 'aria-hidden': 'true', title: 'Mark (x)' }, '✓'));
    overlays.see(tile.label, tile.caption);
    const source = tile.image ?? tile.frames?.[0];
    let badge = tile.frames?.length > 1 ? count(tile.frame_count, 'frame') : tile.series || tile.image ? tile.text : '';
    if (source?.startsWith('data:image/')) this.fillImage(node, stage, tile, source);
    else if (tile.series?.length) stage.append(curve(tile.series, 160, 160, `curve of ${tile.series.length} values`));
    else stage.append(el('pre', { class: tile.problem ? 'text error' : 'text' }, tile.problem?.problem ?? tile.problem?.message ?? tile.text ?? ''));
    if (tile.problem) badge = tile.problem.defect || 'damaged';
    if (badge) stage.append(el('span', { class: tile.problem ? 'badge bad' : 'badge' }, badge.slice(0, 80)));
    this.markTile(node, tile, tile.place);
  }

  fillImage(node, stage, tile, source) {
    const area = contain(tile.width, tile.height, { width: this.width, height: this.width });
    const image = el('img', { src: source, alt: '', draggable: 'false', class: area.width >= 3 * tile.width ? 'photo pixels' : 'photo' });
    const mask = tile.mask && el('canvas', { class: 'mask' });
    const boxes = svg('svg', { class: 'boxes', width: this.width, height: this.width, 'aria-hidden': 'true' });
    [image, mask].forEach((part) => part && setPlace(part, area));
    stage.append(...[image, mask, boxes].filter(Boolean));
    for (const [, , , , label, text] of tile.boxes ?? []) overlays.see(label, text);
    node.frames = tile.frames;
    node.paint = () => {
      if (tile.boxes?.length) drawBoxes(boxes, tile.boxes, area, 10);
      if (tile.labels) paintMask(mask, tile.labels);
    };
    node.paint();
    if (mask && !tile.labels && tile.mask.startsWith('data:image/')) readMask(tile.mask).then((labels) => Object.assign(tile, { labels }) && node.paint(), () => {});
  }

  markTile(node, tile, place) {
    node.setAttribute('aria-selected', String(tile?.position != null && this.actions.isMarked(tile.position)));
    node.classList.toggle('current', place === this.current);
  }

  /** Draw again what overlays, marks or the current record changed. */
  repaint() {
    for (const [key, node] of this.nodes) {
      node.paint?.();
      if (typeof key === 'number') this.markTile(node, this.tiles.get(key), key);
    }
  }

  setCurrent(place) {
    this.current = Math.max(0, Math.min(place, this.total - 1));
    const top = this.topOf(this.current);
    const least = top + this.row - this.scroller.clientHeight + GAP;
    this.scrollTo(Math.min(Math.max(this.offset, least), top - HEAD));
    for (const [key, node] of this.nodes) node.classList.toggle('current', key === this.current);
  }

  /** The tile at a place, fetched if it is not kept. */
  async tileAt(place) {
    if (this.tiles.has(place)) return this.tiles.get(place);
    for await (const tile of this.fetch(place, 1)) return tile;
    return null;
  }

  /** Open or mark the record at a place, also where its tile is still on its way. */
  async act(name, place) {
    const { selection } = this;
    const tile = await this.tileAt(place).catch((error) => this.actions.loaded(explain(error)));
    if (tile?.position == null || this.selection !== selection) return;
    if (name === 'mark') this.actions.mark(tile);
    else if (this.current === place) this.actions.open(place, tile);
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.total) return;
    const page = this.columns * Math.max(1, Math.floor(this.scroller.clientHeight / this.row));
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, PageUp: -page, PageDown: page, Home: -this.total, End: this.total }[event.key];
    const next = this.current + step;
    if (step && event.key.startsWith('Arrow') && (next < 0 || next >= this.total)) event.preventDefault();
    else if (step) this.setCurrent(next);
    else if (event.key === 'Enter') this.act('open', this.current);
    else if (event.key === 'x' || event.key === ' ') this.act('mark', this.current);
    else return;
    event.preventDefault();
  }

  onClick(event) {
    const node = event.target.closest('[data-place]');
    if (!node) return;
    const place = Number(node.dataset.place);
    const isMark = event.shiftKey || event.ctrlKey || event.metaKey || event.target.closest('.mark');
    this.setCurrent(place);
    this.act(isMark ? 'mark' : 'open', place);
  }

  /** Show the frame of an episode that the pointer chooses. */
  onHover(event) {
    const stage = event.target.closest?.('.stage');
    const frames = stage?.parentNode.frames;
    if (!frames?.length) return;
    const share = (event.clientX - stage.getBoundingClientRect().left) / stage.clientWidth;
    const source = frames[Math.max(0, Math.min(frames.length - 1, Math.floor(share * frames.length)))];
    if (source.startsWith('data:image/')) stage.querySelector('img').src = source;
  }
}

export function swatch(label) {
  const node = el('i', { class: 'swatch', 'aria-hidden': 'true' });
  node.style.background = colour(label);
  return node;
}
