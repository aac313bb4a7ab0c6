// Boxes as SVG and masks on a canvas, in the colours of their classes.

import { el, svg } from './dom.js';

const [MAX_BOXES, MAX_SKELETONS, MAX_CLASSES] = [2000, 300, 5000];
const [BACKGROUND, VOID] = [0, 255];

/** What is drawn over images: switches, the classes that are hidden, and those seen so far. */
export const overlays = {
  palette: [], names: [], boxes: true, points: true, texts: true, masks: true, outlines: true, opacity: 0.5, hidden: new Set(), seen: new Map(), isMixed: false, onseen: () => {},
  classKeys: [], skeletons: {},
  /** The name of a class, for a value of a feature with classes; else ''. */
  nameOf(key, label) {
    const name = this.classKeys.includes(key) ? this.names[label] || (!this.isMixed && this.seen.get(Number(label))) || '' : '';
    return name === String(label) ? '' : name;
  },
  see(label, text) {
    const known = this.seen.get(label);
    this.isMixed ||= Boolean(known && text && known !== text);  // so texts are not names of classes
    if (label == null || this.seen.size > MAX_CLASSES || (this.seen.has(label) && (this.seen.get(label) || !text))) return;
    this.seen.set(label, text || this.names[label] || this.seen.get(label) || '');
    this.onseen();
  },
};

export const rgb = (label) => overlays.palette.at(label % overlays.palette.length) ?? [128, 128, 128];
export const colour = (label) => `rgb(${rgb(label).join(',')})`;
const ink = (label) => {
  const [r, g, b] = rgb(label).map((value) => (value / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? '#000' : '#fff';
};

/** Draw boxes and keypoints over the image, which fills `area` of an SVG of that size in CSS pixels. */
export function drawBoxes(root, boxes, area, font = 11) {
  root.replaceChildren();
  if (!boxes?.length) return;
  const shown = boxes.slice(0, MAX_BOXES).filter((box) => !overlays.hidden.has(box[4])).map(([ymin, xmin, ymax, xmax, label, text, corners, points]) => ({
    left: area.left + Math.min(xmin, xmax) * area.width, top: area.top + Math.min(ymin, ymax) * area.height,
    width: Math.abs(xmax - xmin) * area.width, height: Math.abs(ymax - ymin) * area.height, label, text: text || overlays.names[label] || '', corners, points }));
  shown.sort((a, b) => b.width * b.height - a.width * a.height);  // small ones on top
  const [x, y] = [(share) => area.left + share * area.width, (share) => area.top + share * area.height];
  const outline = (tag, sides, label, props, ...children) => root.append(
    svg(tag, { ...sides, fill: 'none', stroke: '#000', 'stroke-opacity': 0.45, 'stroke-width': 3.5 }),
    svg(tag, { ...sides, fill: 'none', stroke: colour(label), 'stroke-width': 2, ...props }, ...children));
  for (const { label, corners, ...box } of overlays.boxes ? shown : []) {
    const sides = corners ? { points: corners.map((value, at) => (at % 2 ? y : x)(value)).join(' ') }
      : { x: box.left, y: box.top, width: Math.max(1, box.width), height: Math.max(1, box.height) };
    outline(corners ? 'polygon' : 'rect', sides, label, { class: 'box' }, svg('title', {}, box.text));
  }
  for (const { label, points } of overlays.points ? shown.slice(0, MAX_SKELETONS) : []) drawPoints(root, points ?? [], label, x, y, outline);
  if (!overlays.texts || !overlays.boxes) return;
  const tags = [];
  for (const box of [...shown].reverse()) {  // the small ones choose first
    const letters = [...box.text].slice(0, 24).join('');
    const tag = letters && findPlace(box, letters.length * font * 0.6 + 6, font + 4, area, tags, shown);
    if (!tag) continue;
    tags.push(tag);
    root.append(
      svg('rect', { x: tag.left, y: tag.top, width: tag.width, height: tag.height, fill: colour(box.label), class: 'tag' }),
      svg('text', { x: tag.left + 3, y: tag.top + font, 'font-size': font, fill: ink(box.label), textLength: tag.width - 6, lengthAdjust: 'spacingAndGlyphs' }, letters),
    );
  }
}

/** Draw visible points as discs, hidden ones as rings, and the lines between them; dashed to hidden ones. */
function drawPoints(root, points, label, x, y, outline) {
  const at = (number) => ({ x: x(points[3 * number]), y: y(points[3 * number + 1]), seen: points[3 * number + 2] ?? 0 });
  for (const [a, b] of (overlays.skeletons[label]?.skeleton ?? []).map((pair) => pair.map(at))) {
    const isHidden = Math.min(a.seen, b.seen) < 2;
    if (a.seen > 0 && b.seen > 0) outline('line', { x1: a.x, y1: a.y, x2: b.x, y2: b.y, 'stroke-dasharray': isHidden && 3 }, label, { class: 'bone' });
  }
  for (let number = 0; 3 * number < points.length; number++) {
    const point = at(number);
    const look = point.seen < 2 ? { fill: '#0006', stroke: colour(label), 'stroke-width': 1.5 } : { fill: colour(label), stroke: '#000b' };
    if (point.seen > 0) root.append(svg('circle', { cx: point.x, cy: point.y, r: 3, ...look, class: 'point' }, svg('title', {}, overlays.skeletons[label]?.names[number] ?? '')));
  }
}

const overlap = (a, b) =>
  Math.max(0, Math.min(a.left + a.width, b.left + b.width) - Math.max(a.left, b.left)) *
  Math.max(0, Math.min(a.top + a.height, b.top + b.height) - Math.max(a.top, b.top));

/** A place for a tag where it hides neither another tag nor much of an object; or null. */
function findPlace(box, width, height, area, tags, boxes) {
  const right = Math.max(area.left, area.left + area.width - width);
  const left = Math.min(Math.max(box.left - 1, area.left), right);
  const tops = [box.top - height, box.top + box.height, box.top];
  for (const top of tops) {
    const tag = { left, top, width, height };
    if (top < area.top || top + height > area.top + area.height || width > area.width) continue;
    if (tags.some((other) => overlap(tag, other) > 0)) continue;
    const hides = (other) => overlap(tag, other) > 0.2 * other.width * other.height;
    if (boxes.length <= 200 ? boxes.some(hides) : hides(box)) continue;
    return tag;
  }
  return null;
}

/** Decode a label map (a greyscale PNG) into its class numbers. */
export async function readMask(source) {
  const image = el('img', { src: source });
  await image.decode();
  const { naturalWidth: width, naturalHeight: height } = image;
  const canvas = el('canvas', { width, height });
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, width, height).data;
  const labels = new Uint8Array(width * height);
  const counts = new Uint32Array(256);
  for (let i = 0; i < labels.length; i++) counts[(labels[i] = pixels[4 * i])]++;
  counts.forEach((number, label) => number && label !== BACKGROUND && label !== VOID && overlays.see(label, ''));
  return { width, height, labels, isVoid: counts[VOID] > 0 && counts[BACKGROUND] + counts[VOID] < labels.length };
}

/** Paint class numbers onto a canvas of their size. */
export function paintMask(canvas, { width, height, labels, isVoid }) {
  canvas.hidden = !overlays.masks;
  if (canvas.hidden) return;
  Object.assign(canvas, { width, height });
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  const words = new Uint32Array(image.data.buffer);  // little-endian: ABGR
  const alpha = Math.round(overlays.opacity * 255) << 24;
  const solid = new Uint32Array(256);
  for (let label = 0; label < 256; label++) {
    const [r, g, b] = rgb(label);
    solid[label] = label === BACKGROUND || overlays.hidden.has(label) ? 0 : (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
  }
  for (let i = 0, y = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      const label = labels[i];
      if (!solid[label]) continue;
      if (isVoid && label === VOID) {
        if ((x + y) % 7 < 2) words[i] = 0xa6ffffff;
      } else if (overlays.outlines && ((x && labels[i - 1] !== label) || (x < width - 1 && labels[i + 1] !== label) ||
        (y && labels[i - width] !== label) || (y < height - 1 && labels[i + width] !== label))) {
        words[i] = solid[label];
      } else words[i] = ((solid[label] & 0xffffff) | alpha) >>> 0;
    }
  }
  context.putImageData(image, 0, 0);
}

/** The part of a square or other area that an image fills, centred, with its aspect ratio. */
export function contain(width, height, room) {
  const scale = Math.min(room.width / (width || 1), room.height / (height || 1));
  const size = { width: (width || 1) * scale, height: (height || 1) * scale };
  return { ...size, left: (room.width - size.width) / 2, top: (room.height - size.height) / 2 };
}

/** A curve of numbers; gaps where they are not finite. */
export function curve(values, width, height, title) {
  const numbers = values.map((value) => (typeof value === 'number' ? value : NaN));
  const known = numbers.filter(Number.isFinite);
  const low = known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  let path = '';
  numbers.forEach((value, index) => {
    if (!Number.isFinite(value)) return;
    const x = (index / Math.max(1, numbers.length - 1)) * (width - 4) + 2;
    const y = high > low ? 2 + (1 - (value - low) / (high - low)) * (height - 4) : height / 2;
    path += `${path && Number.isFinite(numbers[index - 1]) ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'curve', preserveAspectRatio: 'none', role: 'img', 'aria-label': title },
    svg('path', { d: path, fill: 'none' }));
}
