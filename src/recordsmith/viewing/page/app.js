// The page: the view in the fragment of its URL, the tools above the gallery, and what is marked.

import { $, bytes, button, copyButton, count, el, explain, getJson, Poll, quiet, settings, sleep, url } from './dom.js';
import { drawOverlays, Facets } from './facets.js';
import { attachCompletion, clauseOf, keyText, literalsOf } from './filter.js';
import { Gallery } from './gallery.js';
import { overlays } from './overlay.js';
import { RecordView } from './record.js';
import { commandsFor, FILE, partsOf, saveMarked } from './save.js';
import { Table } from './table.js';

const VIEWS = { records: 'Records', stats: 'Statistics', verify: 'Damage', preview: 'Loader' };
const KEYS = { 'Arrows, Page, Home, End': 'choose a record', Enter: 'open it', x: 'mark it', '/': 'filter', t: 'table or thumbnails', f: 'facets and overlays', 'b, p, l, m': 'boxes, points, labels, masks', d: 'dark or light',
  '← →': 'previous and next record', '+ − 0 1': 'zoom, fit, show pixels', 'Shift and arrows': 'move the image', Escape: 'close', '?': 'this help' };
const NO_STATE = { split: '', where: '', sort: '', group: '', view: 'records', layout: '', columns: '', record: '', place: '' };
const MAX_COLUMNS = 50;
const SHOWN_COLUMNS = 8;  // at first

let [dataset, state, marked, hasFailed] = [{}, { ...NO_STATE }, new Set(), false];
const [selectionPoll, reportPoll] = [new Poll(), new Poll()];
const selection = () => ({ split: state.split, where: state.where, sort: state.sort });
const isMarked = (position) => marked.has(position);
const notice = (text) => ($('notice').textContent = text);

const actions = { open: (place, tile) => go({ record: tile.position, place }), mark: ({ position }) => mark(position), isMarked, loaded, sort: (key) => go({ sort: state.sort === key ? `-${key}` : key }) };
const [gallery, table] = [new Gallery($('gallery'), actions), new Table($('table'), actions)];
const list = () => (state.layout ? table : gallery);  // what shows the records
const recordView = new RecordView($('record'), { change, close: () => go({ record: '', place: '' }), step, mark: ({ position }) => mark(position), isMarked, command: (position) => commandsFor(dataset, { positions: [position] }, '')?.['Open them'] });
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
  showClassNames();
  $('sort').value = state.sort.replace(/^-/, '');
  $('direction').setAttribute('aria-pressed', String(isDown));
  $('direction').textContent = isDown ? '↓' : '↑';
  $('group').checked = state.group === '1';
  for (const node of document.querySelectorAll('.if-sorted')) node.hidden = !state.sort;
  if (isChanged('layout', 'columns', 'sort')) table.setColumns(shownColumns(), state.sort);
  if (isChanged('view', 'layout')) showView();
  if (isChanged('split', 'where', 'sort', 'group', 'layout', 'columns')) select(Number(state.place) || (isChanged('layout') && !isFirst ? (state.layout ? gallery : table).current : 0));
  if (isChanged('layout') && !isFirst) list().scroller.focus();
  if (!isChanged('record')) return;
  state.record === '' ? recordView.close() : recordView.open(Number(state.record), selection());
  for (const id of ['top', 'tools', 'room']) $(id).inert = state.record !== '';
  if (state.place !== '' && list().total) list().setCurrent(Number(state.place));
  if (state.record === '' && before.record !== '') list().scroller.focus();
}

/** Show the records of the state. A filter that is wrong says why, and what was shown stays. */
function select(place, wanted = selection(), problem = '') {
  const shown = list();
  let [last, isShown] = [0, false];
  const say = (text) => {
    $('filter-error').textContent = text;
    $('where').setAttribute('aria-invalid', String(Boolean(text)));
  };
  say(problem);
  selectionPoll.run('view', wanted, (answer) => {
    const { count: number, scanned, total, is_complete: isComplete, error } = answer;
    const isPartlySorted = error?.option === 'sort' && number > 0;
    if (error && !isPartlySorted) {
      say(error.message.replace(/^(--)?where /, 'The filter '));
      if (!shown.selection && error.option) select(place, { split: error.option === 'split' ? '' : wanted.split, where: '', sort: wanted.sort }, $('filter-error').textContent);
      return;
    }
    if (!number && !isComplete) return;  // until there is something to show
    $('count').textContent = countText(wanted, answer);
    shown.scroller.dataset.empty = isComplete && !number ? (wanted.where ? 'No record matches.' : 'No records.') : '';
    if (!isShown || (wanted.sort && number !== last)) shown.reset(wanted, place);  // more records are in another order
    [isShown, last] = [true, number];
    if (isPartlySorted) notice(error.message);
    if (!number) facets.show(wanted.split, '');
    shown.setTotal(number);
    if (isComplete && !error && state.group && wanted.sort) {
      getJson('groups', wanted).then(({ groups }) => shown.setGroups(groups), (failure) => notice(explain(failure)));
    }
  });
}

/** Show the names of the classes whose numbers are in the filter. */
function showClassNames() {
  const names = (key) => literalsOf(clauseOf(state.where, key)).map((literal) => overlays.nameOf(key, literal)).filter(Boolean).join(', ');
  $('filter-names').textContent = overlays.classKeys.map((key) => names(key) && `${key}: ${names(key)}`).filter(Boolean).join(' · ');
}

function countText({ where, sort }, { count: number, scanned, total, is_complete: isComplete, error }) {
  const more = isComplete ? '' : ' …';
  if (sort && (more || error)) return `${where ? `${count(number)} in the` : 'sorted: the'} first ${count(scanned)} of ${count(total)}${more}`;
  if (more) return `${count(number)} in the first ${count(scanned)} …`;
  if (scanned < total) return `${count(number)} in the readable ${count(scanned)} of ${count(total)}`;
  return where ? `${count(number)} of ${count(total)}` : count(number, 'record');
}

/** Tiles have come, or could not: count for the facets, which may wait until then. */
function loaded(problem) {
  if (problem || hasFailed) notice(problem);
  hasFailed = Boolean(problem);
  const { split, where } = list().selection ?? state;
  if (!problem) facets.show(split, where);
}

/** Show the previous or next record of the view. */
async function step(by) {
  try {
    const place = state.place === '' || !list().total ? null : Math.max(0, Math.min(list().total - 1, Number(state.place) + by));
    const { previous, next } = recordView.record ?? {};
    const record = place !== null ? (await list().tileAt(place))?.position : by < 0 ? previous : next;
    if (record != null) go({ record, place: place ?? '' });
  } catch (error) {
    notice(explain(error));
  }
}

// other views

function showView() {
  for (const node of $('views').children) node.setAttribute('aria-current', node.dataset.view === state.view ? 'page' : 'false');
  const isList = state.view === 'records';
  for (const id of ['tools', 'side', 'panel']) $(id).hidden = isList === (id === 'panel');
  for (const id of ['gallery', 'table']) $(id).hidden = !isList || (id === 'table') !== Boolean(state.layout);
  $('layout').setAttribute('aria-pressed', String(Boolean(state.layout)));
  $('columns').hidden = !state.layout;
  $('size-field').hidden = Boolean(state.layout);
  $('panel').replaceChildren();
  reportPoll.stop();
  if (isList) list().layout(list().current);
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
  const found = kind === 'verify' && dataset.notices.length ? [opened()] : [];
  $('panel').replaceChildren(...found, el('div', { class: 'waiting' }, text, progress, stop));
  reportPoll.run(`report/${kind}`, {}, ({ error, state: name, done, total }) => {
    if (error) $('panel').replaceChildren(...found, el('p', { class: 'error', role: 'alert' }, error.message));
    else if (name === 'done') $('panel').replaceChildren(makeFrame(kind));  // with all that was found
    else if (total) {
      [progress.max, progress.value] = [total, done];
      text.textContent = `Read ${bytes(done)} of ${bytes(total)} …`;
    }
  }, ({ state: name }) => name === 'done');
}

/** What was found when the files were opened; records after these places are not shown. */
const opened = () => el('section', { class: 'opened', 'aria-label': 'Found while opening', tabindex: 0 }, el('h2', {}, `${count(dataset.notices.length, 'problem')} found while opening`),
  el('ul', {}, dataset.notices.map((text) => el('li', {}, text))), quiet('Intact records are shown.'));

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
  list().repaint();
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
      el('div', {}, button(`Download ${FILE}`, 'Save the marked records as a file of findings', () => saveMarked(positions).catch((error) => notice(explain(error)))), ' ', button('Unmark all', 'Unmark all', () => {
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

const columnKeys = () => dataset.features.filter(({ section }) => section !== 'feature_lists');

/** The features that are columns: those of the address, or else some with one value or a text. */
function shownColumns() {
  const all = columnKeys();
  if (state.columns) {
    const byKey = new Map(all.map((feature) => [feature.key, feature]));
    return state.columns.split('\n').map((key) => byKey.get(key)).filter(Boolean).slice(0, MAX_COLUMNS);
  }
  const simple = all.filter(({ kind, content, shape }) => shape?.length === 0 && (kind !== 'bytes' || content === 'text'));
  return (simple.length > 2 ? simple : all).slice(0, SHOWN_COLUMNS);
}

function openColumns() {
  const chosen = new Set(shownColumns().map(({ key }) => key));
  const change = (key, isShown) => {
    isShown ? chosen.add(key) : chosen.delete(key);
    go({ columns: columnKeys().map((feature) => feature.key).filter((each) => chosen.has(each)).join('\n') });
  };
  dialog('Columns', el('div', { class: 'choices' }, columnKeys().map(({ key }) => el('label', { class: 'check' },
    el('input', { type: 'checkbox', checked: chosen.has(key), onchange: ({ target }) => change(key, target.checked) }), key))));
}

const toggleLayout = () => go({ layout: state.layout ? '' : 'table', place: '' });

const openHelp = () => dialog('Keys', el('dl', { class: 'keys' }, Object.entries(KEYS).map(([key, text]) => [el('dt', {}, key), el('dd', {}, text)])));

// tools

function change(values, isWhole = true) {
  Object.assign(overlays, values);
  const { boxes, points, texts, masks, outlines, opacity } = overlays;
  settings.write('overlays', { boxes, points, texts, masks, outlines, opacity });
  list().repaint();
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
    waiting = setTimeout(() => {
      drawOverlays($('overlays'), change);
      showClassNames();
      facets.draw({});
    }, 150);
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
  for (const [id, act] of Object.entries({ save: openSave, layout: toggleLayout, columns: openColumns, theme: turnTheme, help: openHelp, 'toggle-side': toggleSide })) on(id, 'click', act);
  document.addEventListener('keydown', onKey);
  $('views').append(...Object.entries(VIEWS).map(([view, title]) => el('button', { type: 'button', 'data-view': view, onclick: () => go({ view }) }, title)));
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || $('dialog').open) return;
  const isOpen = !$('record').hidden;
  const acts = { '?': openHelp, d: turnTheme, b: () => change({ boxes: !overlays.boxes }), p: () => change({ points: !overlays.points }), m: () => change({ masks: !overlays.masks }), l: () => change({ texts: !overlays.texts }),
    ...(!isOpen && { '/': () => $('where').select(), f: toggleSide, t: toggleLayout }) };
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
  const damaged = document.querySelector('[data-view=verify]');
  damaged.replaceChildren(VIEWS.verify, ...(notices?.length ? [' ', el('b', { class: 'number' }, count(notices.length))] : []));
  damaged.title = notices?.length ? `${count(notices.length, 'problem')} found while opening` : '';
}

async function start() {
  document.documentElement.dataset.theme = settings.read('theme', '');
  Object.assign(overlays, settings.read('overlays', {}));
  attach();
  if (innerWidth < 700) toggleSide();
  dataset = await getJson('dataset').catch((error) => notice(explain(error)));
  if (!dataset.palette) return;
  describe();
  Object.assign(overlays, { palette: dataset.palette, names: dataset.class_names ?? [], classKeys: dataset.scene.class_keys, skeletons: dataset.scene.skeletons });
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
  list().scroller.focus({ preventScroll: true });
  while (dataset.is_counting) {
    await sleep(700);
    dataset = await getJson('dataset').catch(() => ({ ...dataset, is_counting: false }));
    describe();
  }
}

start();
