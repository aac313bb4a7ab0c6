// Commands that take records along: in the shell, or in Python for a Dataset that was passed.

import { el } from './dom.js';

const LISTED = 200;  // positions in a command; more are in a file
const POSITIONS = 'positions.txt';

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const safe = (path) => quote(path.startsWith('-') ? `./${path}` : path);

/** The commands by what they do. `records` has positions, or a condition (`where`) and a split; null where no command has them. */
export function commandsFor({ start: { paths, split }, scene }, records, name) {
  const isFiles = scene.image_key && scene.label_key;
  const format = isFiles ? 'folder' : 'parquet';
  const { positions, where } = records;
  if (records.split && (split || !paths.length)) return null;  // a split of what is a part already
  if (!paths.length) {
    const listed = positions?.length > LISTED ? `[*map(int, open("${POSITIONS}").read().split(","))]` : `[${positions?.join(', ')}]`;
    const chosen = `dataset${positions ? `.select(${listed})` : where ? `.filter(${JSON.stringify(where)})` : ''}`;
    return { 'Open them': `rs.view(${chosen})`, 'Draw them': `rs.sheet(${chosen}, "${name}.png")`,
      'Export files': `rs.export(${chosen}, "${name}-files", "${format}")`, 'New dataset': `rs.reshard(${chosen}, "${name}")` };
  }
  const at = positions?.length > LISTED ? `@${POSITIONS}` : positions?.join(',');
  const options = Object.entries({ split: split || records.split, at, where }).filter(([, value]) => value).map(([option, value]) => ` --${option} ${quote(value)}`).join('');
  const command = (verb, out = '') => `recordsmith ${verb} ${paths.map(safe).join(' ')}${out}${options}`;
  const ofOne = { 'Draw them': command('sheet', ` ${name}.png`), 'Export files': command('export', ` ${name}-files --format ${format}`) };
  return { 'Open them': command('view'), ...(paths.length === 1 && ofOne), 'New dataset': command('reshard', ` ${name}`) };
}

/** A command as text that breaks before its options. */
export const partsOf = (line) => line.split(/ (?=--)/).flatMap((part, at) => [at && ' ', el('span', {}, part)]);

/** The address of a file with positions. */
export const positionsFile = (positions) => URL.createObjectURL(new Blob([`${positions.join(',')}\n`], { type: 'text/plain' }));
