/** Whether every message of the kit has arrived; else how many are missing, and why. And from when on they are still kept. */
import { countsOf } from '../../world/history/history.ts';
import { field, own, textIn } from '../../world/json.ts';
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { shape } from '../parts/icon.ts';
import { card } from '../parts/marks.ts';
import type { View } from '../../types.d.ts';

export function completenessCard(view: View) {
  if (view.history.state(view) !== 'on') return '';
  const { value } = view.history.completeness(view);
  const { received, missing, reasons, more } = countsOf(value);
  const oldest = field(value, 'oldest');
  const position_ms = Date.parse(textIn(field(oldest, 'position')));
  const values_ms = Date.parse(textIn(field(oldest, 'feed')));
  const since_ms = Date.parse(textIn(field(value, 'since')));
  const first =
    received === 0
      ? html`<p class="empty">${t.history.noMessages}</p>`
      : missing === 0
        ? html`<p class="line state good">${shape('on')}<span>${t.history.isComplete}</span></p>`
        : html`<p class="line state warn">${shape('warn')}<span>${t.history.incomplete(missing)}</span></p>
            <ul class="rows">
              ${[...reasons].map(([why, n]) => html`<li key=${why} class="line">${t.history.because({ n, why: sentenceOf(why) })}</li>`)}
              ${more > 0 && html`<li class="line">${t.history.moreGaps(more)}</li>`}
            </ul>`;
  return card(
    'completeness',
    t.history.complete,
    html`${first} ${position_ms > 0 && html`<p class="cap line">${t.history.positionsFrom(position_ms)}</p>`}
      ${values_ms > 0 && html`<p class="cap line">${t.history.valuesFrom(values_ms)}</p>`}
      <p class="cap line last">${t.history.since({ ms: since_ms, age_ms: view.time_ms - since_ms })}</p>`,
  );
}

function sentenceOf(why: string) {
  if (why === '') return t.history.unexplained;
  return why
    .split(', ')
    .map((each) => own(t.history.reason, each) ?? plain(each))
    .join(', ');
}
