// The page: the view in the fragment of its URL, the tools above the gallery, and what is marked.

import { $, bytes, button, copyButton, count, el, explain, getJson, Poll, quiet, settings, sleep, url } from './dom.js';
import { drawOverlays, Facets } from './facets.js';
import { attachCompletion, keyText } from './filter.js';
import { Gallery } from './gallery.js';
import { overlays } from './overlay.js';
import { RecordView } from './record.js';
import { commandsFor, partsOf, positionsFile } from './save.js';

const VIEWS = { records: 'Records', stats: 'Statistics', verify: 'Damage', preview: 'Loader' };
const KEYS = { 'Arrows, Page, Home, End': 'choose a record', Enter: 'open it', x: 'mark it', '/': 'filter', f: 'facets and overlays', 'b, m': 'boxes, masks', d: 'dark or light',
  '← →': 'previous and next record', '+ − 0 1': 'zoom, fit, show pixels', 'Shift and arrows': 'move the image', Escape: 'close', '?': 'this help' };
const NO_STATE = { split: '', where: '', sort: '', group: '', view: 'records', record: '', place: '' };

let [dataset, state, marked, hasFailed] = [{}, { ...NO_STATE }, new Set(), false];
const [selectionPoll, reportPoll] = [new Poll(), new Poll()];
const selection = () => ({ split: state.split, where: state.where, sort: state.sort });
const isMarked = (position) => marked.has(position);
const notice = (text) => ($('notice').textContent = text);

const gallery = new Gallery($('gallery'), { open: (place, tile) => go({ record: tile.position, place }), mark: ({ position }) => mark(position), isMarked, loaded });
const recordView = new RecordView($('record'), { close: () => go({ record: '', place: '' }), step, mark: ({ position }) => mark(position), isMarked, command: (position) => commandsFor(dataset, { positions: [position] }, '')?.['Open them'] });
const facets = new Facets($('facets'), (edit) => go({ where: edit(state.where) }));

// the state

/** Change the state, which is in the fragment, and show it. */
function go(changes) {
  const known = Object.entries({ ...state, ...changes }).map(([name, value]) => [name, String(value)]).filter(([name, value]) => value !== NO_STATE[name]);
  const hash = `#${new URLSearchParams(known)}`;
  if (hash === (location.hash || '#')) return;
  history.pushState(null, '', hash);
  apply();
}

function apply(isFirst = false) {
  const before = state;
  const known = new URLSearchParams(location.hash.slice(1));
  state = Object.fromEntries(Object.entries(NO_STATE).map(([name, otherwise]) => [name, known.get(name) ?? otherwise]));
  if (!(state.view in VIEWS)) state.view = 'records';
  const isChanged = (...names) => isFirst || names.some((name) => state[name] !== before[name]);
  const isDown = state.sort.startsWith('-');
  for (const name of ['split', 'where']) $(name).value = state[name];
  $('clear').hidden = !state.where;
  $('sort').value = state.sort.replace(/^-/, '');
  $('direction').setAttribute('aria-pressed', String(isDown));
  $('direction').textContent = isDown ? '↓' : '↑';
  $('group').checked = state.group === '1';
  for (const node of document.querySelectorAll('.if-sorted')) node.hidden = !state.sort;
  if (isChanged('split', 'where', 'sort', 'group')) select(Number(state.place) || 0);
  if (isChanged('view')) showView();
  if (!isChanged('record')) return;
  state.record === '' ? recordView.close() : recordView.open(Number(state.record), selection());
  for (const id of ['top', 'tools', 'room']) $(id).inert = state.record !== '';
  if (state.place !== '' && gallery.total) gallery.setCurrent(Number(state.place));
  if (state.record === '' && before.record !== '') $('gallery').focus();
}

function select(place) {
  let last = 0;
  gallery.reset(selection(), place);
  selectionPoll.run('view', selection(), (answer) => {
    const { count: number, scanned, total, is_complete: isComplete, error } = answer;
    $('filter-error').textContent = error?.message ?? '';
    $('where').setAttribute('aria-invalid', String(Boolean(error)));
    $('count').textContent = error ? '' : !isComplete ? `${count(number)} in the first ${count(scanned)} …` : state.where && scanned < total ? `${count(number)} in the readable ${count(scanned)} of ${count(total)}` : state.where ? `${count(number)} of ${count(total)}` : count(number, 'record');
    $('gallery').dataset.empty = !error && isComplete && !number ? (state.where ? 'No record matches.' : 'No records.') : '';
    if (state.sort && last > 0 && number !== last) gallery.reset(selection(), place);  // in another order
    last = number;
    if (error || !number) facets.show(state.split, '');
    gallery.setTotal(error ? 0 : number);
    if (isComplete && !error && state.group && state.sort) {
      getJson('groups', selection()).then(({ groups }) => gallery.setGroups(groups), (failure) => notice(explain(failure)));
    }
  });
}

/** Tiles have come, or could not: count for the facets, which may wait until then. */
function loaded(problem) {
  if (problem || hasFailed) notice(problem);
  hasFailed = Boolean(problem);
  if (!problem) facets.show(state.split, state.where);
}

/** Show the previous or next record of the view. */
async function step(by) {
  try {
    const place = state.place === '' || !gallery.total ? null : Math.max(0, Math.min(gallery.total - 1, Number(state.place) + by));
    const { previous, next } = recordView.record ?? {};
    const record = place !== null ? (await gallery.tileAt(place))?.position : by < 0 ? previous : next;
    if (record != null) go({ record, place: place ?? '' });
  } catch (error) {
    notice(explain(error));
  }
}

// other views

function showView() {
  for (const node of $('views').children) node.setAttribute('aria-current', node.dataset.view === state.view ? 'page' : 'false');
  const isGallery = state.view === 'records';
  for (const id of ['tools', 'gallery', 'side', 'panel']) $(id).hidden = isGallery === (id === 'panel');
  $('panel').replaceChildren();
  reportPoll.stop();
  if (isGallery) gallery.layout(gallery.current);
  else if (state.view === 'preview') showPreview();
  else showReport(state.view);
}

function showReport(kind) {
  const progress = el('progress', { 'aria-label': 'Bytes read' });
  const text = el('p', { role: 'status' }, 'Reading the records …');
  const stop = button('Stop', 'Stop reading', () => {
    reportPoll.stop();
    fetch(url(`report/${kind}`), { method: 'DELETE' }).catch(() => {});
    $('panel').replaceChildren(el('p', { class: 'waiting' }, 'Stopped.', button('Read again', 'Read again', () => showReport(kind))));
  });
  $('panel').replaceChildren(el('div', { class: 'waiting' }, text, progress, stop));
  reportPoll.run(`report/${kind}`, {}, ({ error, state: name, done, total }) => {
    if (error) $('panel').replaceChildren(el('p', { class: 'error', role: 'alert' }, error.message));
    else if (name === 'done') $('panel').replaceChildren(makeFrame(kind));
    else if (total) {
      [progress.max, progress.value] = [total, done];
      text.textContent = `Read ${bytes(done)} of ${bytes(total)} …`;
    }
  }, ({ state: name }) => name === 'done');
}

function makeFrame(kind) {
  const frame = el('iframe', { src: `report/${kind}`, title: VIEWS[kind], sandbox: 'allow-same-origin' });
  frame.addEventListener('load', () => frame.contentDocument.addEventListener('click', (event) => {
    const record = new URLSearchParams(event.target.closest('a')?.hash.slice(1)).get('record');
    event.preventDefault();
    if (record) go({ record, place: '' });
  }));
  return frame;
}

function showPreview() {
  const image = el('img', { alt: 'A batch as the loader gives it', onerror: () => notice('The loader gives no batch with these options.'), onload: () => notice('') });
  const number = (name, value, min, max) => el('label', {}, `${name[0].toUpperCase()}${name.slice(1)} `, el('input', { type: 'number', name, value, min, max }));
  const draw = () => notice('Loading a batch …') && (image.src = url('preview', { split: state.split, ...Object.fromEntries(new FormData(form)) }));
  const form = el('form', { class: 'preview', onchange: draw }, number('seed', 0, 0, 1e9), number('size', 160, 16, 512),
    el('label', {}, 'Crop ', el('select', { name: 'crop' }, ['none', 'center', 'random'].map((value) => el('option', { value }, value)))),
    el('label', { class: 'check' }, el('input', { type: 'checkbox', name: 'flip', value: '1' }), 'Flip'),
    button('Next seed', 'Show another batch', () => draw((form.elements.seed.valueAsNumber += 1))));
  draw();
  $('panel').replaceChildren(form, image);
}

// marks

function mark(position) {
  if (!marked.delete(position)) marked.add(position);
  showMarks();
}

const marksName = () => `marks.${JSON.stringify([dataset.paths, dataset.start.paths, dataset.start.split])}`;

function showMarks() {
  settings.write(marksName(), [...marked]);
  $('save').textContent = marked.size ? `Save (${count(marked.size)})` : 'Save';
  gallery.repaint();
  recordView.showMark();
}

function openSave() {
  const positions = [...marked].sort((a, b) => a - b);
  const { split, where } = state;
  const sectionOf = (title, records, name) => {
    const commands = commandsFor(dataset, records, name);
    return [el('h3', {}, title), commands ? Object.entries(commands).map(([what, line]) => el('div', { class: 'command' }, el('span', {}, what), el('code', {}, partsOf(line)), copyButton('Copy', `Copy: ${what}`, () => line)))
      : quiet('No command can choose a split of a part. Mark the records instead.')];
  };
  dialog('Save records', [
    positions.length ? [sectionOf(`${count(positions.length, 'marked record')}`, { positions }, 'marked'),
      el('div', {}, el('a', { download: 'positions.txt', class: 'button', href: positionsFile(positions) }, 'Download positions.txt'), ' ', button('Unmark all', 'Unmark all', () => {
        marked.clear();
        showMarks();
        $('dialog').close();
      }))] : quiet('Press x on a record, or Ctrl and click, to mark it; marks stay in this browser.'),
    (split || where || !positions.length) && sectionOf(split || where ? `Records of this view: ${$('count').textContent}` : 'All records', { split, where }, where ? 'matching' : split || 'copy')]);
}

function dialog(title, content) {
  $('dialog').replaceChildren(el('h2', { id: 'dialog-title' }, title), el('div', {}, content), button('Close', 'Close', () => $('dialog').close()));
  $('dialog').showModal();
}

const openHelp = () => dialog('Keys', el('dl', { class: 'keys' }, Object.entries(KEYS).map(([key, text]) => [el('dt', {}, key), el('dd', {}, text)])));

// tools

function change(values, isWhole = true) {
  Object.assign(overlays, values);
  const { boxes, texts, masks, outlines, opacity } = overlays;
  settings.write('overlays', { boxes, texts, masks, outlines, opacity });
  gallery.repaint();
  recordView.paint();
  if (isWhole) drawOverlays($('overlays'), change);
}

function turnTheme() {
  const { dataset: root } = document.documentElement;
  const isDark = root.theme ? root.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  settings.write('theme', (root.theme = isDark ? 'light' : 'dark'));
}

const toggleSide = () => $('toggle-side').setAttribute('aria-expanded', String(!document.body.classList.toggle('no-side')));

function attach() {
  let waiting = 0;
  overlays.onseen = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => drawOverlays($('overlays'), change), 150);
  };
  attachCompletion((where) => go({ where }));
  const on = (id, name, listener) => $(id).addEventListener(name, listener);
  on('split', 'change', ({ target }) => go({ split: target.value, place: '' }));
  on('sort', 'change', ({ target }) => go({ sort: target.value, group: target.value && state.group }));
  on('direction', 'click', () => go({ sort: state.sort.startsWith('-') ? state.sort.slice(1) : `-${state.sort}` }));
  on('group', 'change', ({ target }) => go({ group: target.checked ? '1' : '' }));
  on('clear', 'click', () => go({ where: '' }));
  on('size', 'input', ({ target }) => settings.write('size', Number(target.value)) || gallery.setSize(Number(target.value)));
  on('tools', 'submit', (event) => event.preventDefault());
  for (const [id, act] of Object.entries({ save: openSave, theme: turnTheme, help: openHelp, 'toggle-side': toggleSide })) on(id, 'click', act);
  document.addEventListener('keydown', onKey);
  $('views').append(...Object.entries(VIEWS).map(([view, title]) => el('button', { type: 'button', 'data-view': view, onclick: () => go({ view }) }, title)));
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || $('dialog').open) return;
  const isOpen = !$('record').hidden;
  const acts = { '?': openHelp, d: turnTheme, b: () => change({ boxes: !overlays.boxes }), m: () => change({ masks: !overlays.masks }),
    ...(!isOpen && { '/': () => $('where').select(), f: toggleSide }) };
  const isTyped = event.target.closest('input:not([type=checkbox], [type=range]), select');
  if (!isTyped && Object.hasOwn(acts, event.key)) acts[event.key]();
  else if (!isOpen || !recordView.onKey(event)) return;
  event.preventDefault();
}

function describe() {
  const { title, record_count: number, is_counting: isCounting, shard_count: shards, size_bytes: size, payload, notices } = dataset;
  document.title = `${title} – recordsmith`;
  $('title').textContent = title;
  $('title').title = (dataset.paths ?? []).join('\n');
  $('about').textContent = [isCounting ? `more than ${count(number, 'record')}` : count(number, 'record'), count(shards, 'shard'), size && bytes(size), payload].filter(Boolean).join(' · ');
  if (notices?.length) notice(notices.join(' '));
}

async function start() {
  document.documentElement.dataset.theme = settings.read('theme', '');
  Object.assign(overlays, settings.read('overlays', {}));
  attach();
  if (innerWidth < 700) toggleSide();
  dataset = await getJson('dataset').catch((error) => notice(explain(error)));
  if (!dataset.palette) return;
  describe();
  Object.assign(overlays, { palette: dataset.palette, names: dataset.class_names ?? [] });
  marked = new Set(settings.read(marksName(), []));
  const { where, at: record } = dataset.start;
  const first = Object.entries({ where, record }).filter(([, value]) => value != null && value !== '');
  if (location.hash.length < 2 && first.length) history.replaceState(null, '', `#${new URLSearchParams(first)}`);
  $('split').append(...['', ...dataset.splits.map(({ name }) => name)].map((value) => el('option', { value }, value || 'all splits')));
  $('split-field').hidden = dataset.splits.length < 2;
  const isOrdered = ({ kind, content, section }) => section !== 'feature_lists' && (kind !== 'bytes' || content === 'text');
  $('sort').append(...['', ...dataset.features.filter(isOrdered).map(({ key }) => key)].map((value) => el('option', { value }, value || 'file order')));
  $('overlays').hidden = !dataset.scene.has_boxes && !dataset.scene.mask_key;
  const number = dataset.features.find(({ kind, shape }) => kind !== 'bytes' && shape?.length === 0);
  if (number) $('where').placeholder = `Filter, such as ${keyText(number.key)} > 1`;
  gallery.setSize(settings.read('size', innerWidth < 700 ? 104 : 160));
  $('size').value = gallery.size;
  drawOverlays($('overlays'), change);
  apply(true);
  addEventListener('popstate', () => apply());
  showMarks();
  $('gallery').focus({ preventScroll: true });
  while (dataset.is_counting) {
    await sleep(700);
    dataset = await getJson('dataset').catch(() => ({ ...dataset, is_counting: false }));
    describe();
  }
}

start();
