// The filter box: completion, and clauses that facets write and take away.

import { $, el, getJson } from './dom.js';

const RESERVED = new Set(['and', 'or', 'not', 'in', 'has', 'missing', 'len', 'all', 'any', 'true', 'false', 'none']);

export const keyText = (key) => (/^[A-Za-z_][A-Za-z0-9_/.:-]*$/.test(key) && !RESERVED.has(key.toLowerCase()) ? key : `\`${key}\``);

/** Cut a condition at its outermost `and`s; one with an outermost `or` is a single clause. */
function clauses(text) {
  const parts = [];
  let [depth, start] = [0, 0];
  for (const token of text.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|[()]|\b(?:and|or)(?![\w/.:-])/g)) {
    if ('()'.includes(token[0])) depth += token[0] === '(' ? 1 : -1;
    if (depth || !/^(and|or)$/.test(token[0]) || /[\w/.:-]/.test(text[token.index - 1] ?? '')) continue;
    if (token[0] === 'or') return [`(${text.trim()})`];
    parts.push(text.slice(start, token.index));
    start = token.index + token[0].length;
  }
  return [...parts, text.slice(start)].map((part) => part.trim()).filter(Boolean);
}

const isAbout = (clause, name) => clause.startsWith(`${name} == `) || clause.startsWith(`${name} in (`) || clause.includes(` <= ${name} <`) || clause === `missing(${name})`;

/** The clause about a feature, of those that facets write; '' if there is none. */
export const clauseOf = (where, key) => clauses(where).find((part) => isAbout(part, keyText(key))) ?? '';

/** The condition with the clause about a feature replaced; '' removes it. */
export const withClause = (where, key, clause) => [...clauses(where).filter((part) => !isAbout(part, keyText(key))), clause].filter(Boolean).join(' and ');

export const rangeClause = (key, low, high, isLast) => `${low} <= ${keyText(key)} ${isLast ? '<=' : '<'} ${high}`;
export const valuesClause = (key, literals) => literals.length && `${keyText(key)} ${literals.length > 1 ? `in (${literals.join(', ')})` : `== ${literals[0]}`}`;
export const literalsOf = (clause) => /(?: == | in \()(.*?)\)?$/s.exec(clause)?.[1].match(/"(?:[^"\\]|\\.)*"|[^\s,]+/g) ?? [];

/** Completions under the filter box, by the pattern of a combobox with a list. */
export function attachCompletion(onsubmit) {
  const [input, list] = [$('where'), $('completions')];
  let [answer, chosen, controller, timer] = [null, -1, null, 0];

  const show = (isShown) => {
    input.setAttribute('aria-expanded', String(!(list.hidden = !isShown)));
    choose(-1);
  };
  const forget = () => {
    controller?.abort();
    clearTimeout(timer);
    answer = null;  // what is shown is for another text
  };
  const close = () => { forget(); show(false); };
  const choose = (index) => {
    chosen = index;
    [...list.children].forEach((node, at) => node.setAttribute('aria-selected', String(at === index)));
    list.children[index]?.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', list.children[index]?.id ?? '');
  };
  const take = (index) => {
    if (answer) input.setRangeText(answer.completions[index].text, answer.start, answer.end, 'end');
    close();
  };
  const ask = async () => {
    controller?.abort();
    const { signal } = (controller = new AbortController());
    const known = await getJson('complete', { text: input.value, cursor: input.selectionStart, split: $('split').value }, { signal }).catch(() => null);
    if (!known || signal.aborted || document.activeElement !== input) return;
    answer = known;
    list.replaceChildren(...answer.completions.map(({ text, detail }, index) => el('li', { role: 'option', id: `completion-${index}`, onpointerdown: (event) => {
      event.preventDefault();
      take(index);
    } }, el('span', {}, text), el('small', {}, detail))));
    const before = chosen;
    show(answer.completions.length > 0);
    choose(Math.min(before, answer.completions.length - 1));
  };

  input.addEventListener('input', () => {
    forget();
    choose(-1);
    timer = setTimeout(ask, 80);
  });
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    const items = list.hidden || !answer ? 0 : list.children.length;
    if (event.key === 'ArrowDown') items ? choose((chosen + 1) % items) : ask((chosen = 0));
    else if (event.key === 'ArrowUp' && items) choose((chosen + items - 1) % items);
    else if ((event.key === 'Tab' && items && !event.shiftKey) || (event.key === 'Enter' && items && chosen >= 0)) take(Math.max(0, chosen));
    else if (event.key === 'Escape') items ? close() : document.querySelector(':is(#gallery, #table):not([hidden])').focus();
    else if (event.key === 'Enter') {
      close();
      onsubmit(input.value.trim());
    } else return;
    event.preventDefault();
  });
}
