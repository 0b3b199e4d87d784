/** The list of the shortcuts. */
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { Sheet } from './sheet.ts';
import { places } from './shortcuts.ts';
import type { View } from '../../types.d.ts';

export function shortcutsSheet({ act }: View) {
  const rows: readonly (readonly [keys: string, what: string])[] = [
    ...Object.entries(places).map(([letter, screen]) => [`g ${letter}`, t.nav[screen]] as const),
    ['/', t.kits.find],
    ['?', t.settings.name.shortcuts],
    ['Esc', t.close],
  ];
  const content = html`<dl class="shortcuts">
    ${rows.map(
      ([keys, what]) =>
        html`<div key=${keys}>
          <dt>${keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</dt>
          <dd>${what}</dd>
        </div>`,
    )}
  </dl>`;
  return html`<${Sheet} title=${t.settings.name.shortcuts} content=${content} onClose=${act.closeSheet} />`;
}
