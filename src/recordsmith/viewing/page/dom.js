// Makes elements, talks to the server, formats numbers. Text of files only becomes text nodes.

const SVG = 'http://www.w3.org/2000/svg';

export const $ = (id) => document.getElementById(id);

/** Make an element; names that begin with `on` are listeners. */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(9).filter((child) => child != null && child !== false && child !== '' && child !== 0));
  return node;
}

/** The parts of a key, which may break after each slash. */
export const breakable = (key) => key.split(/(?<=\/)/).flatMap((part) => [part, el('wbr')]);

export const button = (text, title, onclick, props = {}) =>
  el('button', { type: 'button', title, 'aria-label': title, onclick, ...props }, text);

export const copyButton = (text, title, make) => button(text, title, async ({ target }) => {
  await navigator.clipboard?.writeText(make()).catch(() => {});
  target.textContent = 'Copied';
});
export const link = (text, title, onclick) => button(text, title || text, onclick, { class: 'link', 'data-focus': text });
export const quiet = (text) => el('p', { class: 'quiet' }, text);

export const place = (node, { left, top, width, height }) => {
  for (const [name, value] of Object.entries({ left, top, width, height })) {
    if (value != null) node.style[name] = `${value}px`;
  }
};

export function url(path, params = {}) {
  const known = Object.entries(params).filter(([, value]) => value != null && value !== '');
  return `api/${path}${known.length ? `?${new URLSearchParams(known)}` : ''}`;
}

async function open(path, params, options) {
  const response = await fetch(url(path, params), options);
  if (response.ok) return response;
  const text = await response.text();
  let message;
  try {
    ({ message } = JSON.parse(text));
  } catch { /* not JSON */ }
  throw new Error(String(message ?? text.slice(0, 300)) || `the server answered ${response.status}`);
}

export const getJson = async (path, params, options) => (await open(path, params, options)).json();
export const getText = async (path, params, options) => (await open(path, params, options)).text();

/** Yield the JSON values of a response, one a line, as they arrive. */
export async function* getLines(path, params, options) {
  const response = await open(path, params, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? '')).split('\n');
    rest = done ? '' : lines.pop();
    for (const line of lines) if (line) yield JSON.parse(line);
    if (done) return;
  }
}

/** Call `each` with answers until one is complete; a newer call of the same poll ends it. */
export class Poll {
  async run(path, params, each, isComplete = (answer) => answer.is_complete) {
    this.stop();
    const { signal } = (this.controller = new AbortController());
    try {
      for (let wait = 80; ; wait = Math.min(1000, wait * 1.6)) {
        const answer = await getJson(path, params, { signal });
        each(answer);
        if (answer.error || isComplete(answer)) return;
        await sleep(wait);
      }
    } catch (error) {
      if (!signal.aborted) each({ error: { message: explain(error) }, is_complete: true });
    }
  }

  stop() { this.controller?.abort(); }
}

export const explain = (error) => error instanceof TypeError ? 'The server does not respond. Is `recordsmith view` still running?' : error.message;

export const count = (number, word) => `${number == null ? '?' : number.toLocaleString('en')}${word ? ` ${word}${number === 1 ? '' : 's'}` : ''}`;

export function bytes(number) {
  if (number == null) return '?';
  const unit = Math.min(4, Math.floor(Math.log10(Math.max(1, number)) / 3));
  return `${+(number / 1000 ** unit).toPrecision(3)} ${['B', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}

/** A number: integers exactly, others with six digits. */
export const short = (number) => (Number.isInteger(number) ? String(number) : String(+number.toPrecision(6)));

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Settings of this browser; a page in a notebook may have no storage. */
export const settings = {
  read(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(`recordsmith.${name}`)) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  write(name, value) {
    try {
      localStorage.setItem(`recordsmith.${name}`, JSON.stringify(value));
    } catch { /* kept for this page only */ }
  },
};
