// The filter box: completion, and clauses that facets write and take away.

import { $, el, getJson } from './dom.js';

const RESERVED = new Set(['and', 'or', 'not', 'in', 'has', 'missing', 'len', 'all', 'any', 'true', 'false', 'none']);

export const keyText = (key) =>
  /^[A-Za-z_][A-Za-z0-9_/.:-]*$/.test(key) && !RESERVED.has(key.toLowerCase()) ? key : `\`${key}\``;

const literal = (value) => (typeof value === 'number' ? String(value) : JSON.stringify(String(value)));

/** Cut a condition at its outermost `and`s; one with an outermost `or` is a single clause. */
function clauses(text) {
  const parts = [];
  let [depth, quote, start, hasOr] = [0, '', 0, false];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (quote) {
      if (char === '\\' && quote !== '`') i++;
      else if (char === quote) quote = '';
    } else if ('"\'`'.includes(char)) quote = char;
    else if (char === '(') depth++;
    else if (char === ')') depth--;
    else if (!depth && /\s/.test(char)) {
      const word = /^\s+(and|or)(?=[\s(])/.exec(text.slice(i));
      if (word?.[1] === 'or') hasOr = true;
      if (word?.[1] === 'and') {
        parts.push(text.slice(start, i));
        i += word[0].length - 1;
        start = i + 1;
      }
    }
  }
  parts.push(text.slice(start));
  if (hasOr) return [`(${text.trim()})`];
  return parts.map((part) => part.trim()).filter(Boolean);
}

const isAbout = (clause, name) => [`${name} == `, `${name} in (`].some((begin) => clause.startsWith(begin)) ||
  clause.includes(` <= ${name} `) || clause === `missing(${name})`;

/** The condition with the clause about a feature replaced; '' removes it. */
export function withClause(where, key, clause) {
  const name = keyText(key);
  return [...clauses(where).filter((part) => !isAbout(part, name)), clause].filter(Boolean).join(' and ');
}

export const valuesClause = (key, values) =>
  values.length === 0 ? '' : values.length === 1 ? `${keyText(key)} == ${literal(values[0])}`
    : `${keyText(key)} in (${values.map(literal).join(', ')})`;

export const rangeClause = (key, low, high, isLast) => `${low} <= ${keyText(key)} ${isLast ? '<=' : '<'} ${high}`;

export const clauseOf = (where, key) => clauses(where).find((part) => isAbout(part, keyText(key))) ?? '';

/** Completions under the filter box, by the pattern of a combobox with a list. */
export function attachCompletion(onsubmit) {
  const input = $('where');
  const list = $('completions');
  let [answer, chosen, controller, timer] = [null, -1, null, 0];

  const close = () => {
    controller?.abort();
    clearTimeout(timer);
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
    chosen = -1;
  };
  const choose = (index) => {
    chosen = index;
    [...list.children].forEach((node, at) => {
      node.setAttribute('aria-selected', String(at === index));
      if (at === index) node.scrollIntoView({ block: 'nearest' });
    });
    if (index >= 0) input.setAttribute('aria-activedescendant', `completion-${index}`);
  };
  const take = (index) => {
    const { text } = answer.completions[index];
    const end = answer.start + text.length;
    input.value = input.value.slice(0, answer.start) + text + input.value.slice(answer.end);
    input.setSelectionRange(end, end);
    close();
    input.focus();
  };
  const ask = async () => {
    controller?.abort();
    const { signal } = (controller = new AbortController());
    try {
      answer = await getJson('complete', { text: input.value, cursor: input.selectionStart, split: $('split').value }, { signal });
    } catch {
      return;
    }
    if (signal.aborted || document.activeElement !== input) return;
    list.replaceChildren(...answer.completions.map(({ text, detail }, index) =>
      el('li', { role: 'option', id: `completion-${index}`, 'aria-selected': 'false', onpointerdown: (event) => {
        event.preventDefault();
        take(index);
      } }, el('span', {}, text), el('small', {}, detail ?? ''))));
    list.hidden = !answer.completions.length;
    input.setAttribute('aria-expanded', String(!list.hidden));
    choose(-1);
  };

  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 80);
  });
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    const items = list.hidden ? 0 : list.children.length;
    if (event.key === 'ArrowDown' && !items) ask();
    else if (event.key === 'ArrowDown') choose((chosen + 1) % items);
    else if (event.key === 'ArrowUp' && items) choose((chosen + items - 1) % items);
    else if (event.key === 'Tab' && items && !event.shiftKey) take(Math.max(0, chosen));
    else if (event.key === 'Enter' && items && chosen >= 0) take(chosen);
    else if (event.key === 'Enter') {
      close();
      onsubmit(input.value.trim());
    } else if (event.key === 'Escape' && items) close();
    else if (event.key === 'Escape') $('gallery').focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
