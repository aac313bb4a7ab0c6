// Commands that take records along: in the shell, or in Python for a Dataset that was passed.

import { el, getText } from './dom.js';

const LISTED = 200;  // positions in a command; more are in a file
const AT_ONCE = 1000;  // positions of a request
export const FILE = 'marked.jsonl';

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const safe = (path) => quote(path.startsWith('-') ? `./${path}` : path);

/** The commands by what they do. `records` has positions, or a condition (`where`) and a split; null where no command has them. */
export function commandsFor({ start: { paths, split }, scene }, records, name) {
  const isFiles = scene.image_key && scene.label_key;
  const format = isFiles ? 'folder' : 'parquet';
  const { positions, where } = records;
  if (records.split && (split || !paths.length)) return null;  // a split of what is a part already
  if (!paths.length) {
    const chosen = `dataset${positions ? `.select([${positions.join(', ')}])` : where ? `.filter(${JSON.stringify(where)})` : ''}`;
    return { 'Open them': `rs.view(${chosen})`, 'Draw them': `rs.sheet(${chosen}, "${name}.png")`,
      'Export files': `rs.export(${chosen}, "${name}-files", "${format}")`, 'New dataset': `rs.reshard(${chosen}, "${name}")` };
  }
  const at = positions?.length > LISTED ? `@${FILE}` : positions?.join(',');
  const typed = (given) => Object.entries(given).filter(([, value]) => value).map(([option, value]) => ` --${option} ${quote(value)}`).join('');
  const given = { split: split || records.split, at, where };
  const command = (verb, out = '', options = given) => `recordsmith ${verb} ${paths.map(safe).join(' ')}${out}${typed(options)}`;
  const ofOne = { 'Draw them': command('sheet', ` ${name}.png`), 'Export files': command('export', ` ${name}-files --format ${format}`) };
  return { 'Open them': command('view'), ...(paths.length === 1 && ofOne), 'New dataset': command('reshard', ` ${name}`),
    ...(positions && { 'Without them': command('reshard', ` without-${name}`, { split: given.split, without: at }) }) };
}

/** A command as text that breaks before its options. */
export const partsOf = (line) => line.split(/ (?=--)/).flatMap((part, at) => [at && ' ', el('span', {}, part)]);

/** Save some records as a file of findings: its first line is that of the first request. */
export async function saveMarked(positions) {
  const parts = [];
  for (let start = 0; start < positions.length; start += AT_ONCE) {
    const text = await getText('marked', { positions: positions.slice(start, start + AT_ONCE).join(',') });
    parts.push(start ? text.slice(text.indexOf('\n') + 1) : text);
  }
  const link = el('a', { download: FILE, href: URL.createObjectURL(new Blob(parts, { type: 'application/x-ndjson' })) });
  link.click();
  URL.revokeObjectURL(link.href);
}
