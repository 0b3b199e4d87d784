/** The time that is shown: its choice, the moment in it, and the text where there is no history. */
import { spans_h, type Span } from '../../world/history/history.ts';
import { clock } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { chip } from '../parts/marks.ts';
import type { View } from '../../types.d.ts';

const steps = 288;

/** Choices of how far back to look; without history, why there is none. */
export function rangeChips(view: View) {
  const { choices, act, history } = view;
  const state = history.state(view);
  // It keeps the place of what comes: below it are buttons, which must not move away from a finger.
  if (state === 'asking') return html`<p class="ranges"></p>`;
  if (state !== 'on') return html`<p class="cap ranges" id="no-history">${t.history[state]}</p>`;
  const choose = (hours: number) => () => act.choose({ hours, moment_ms: null });
  return html`<div class="chips ranges" role="group" aria-label=${t.history.range}>
    ${spans_h.map((hours) => chip(hours, spanText(hours), { isOn: choices.hours === hours, choose: choose(hours) }))}
  </div>`;
}

export function spanText(hours: number) {
  return Object.entries(t.history.spans).find(([key]) => Number(key) === hours)?.[1] ?? '';
}

/** The slider under charts and map; at its end it shows now. */
export function scrubber({ choices, act }: View, { from_ms, to_ms, hours }: Span) {
  if (hours === 0) return '';
  const step_ms = (to_ms - from_ms) / steps;
  const at = choices.moment_ms === null ? steps : Math.round((choices.moment_ms - from_ms) / step_ms);
  const slide = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    const step = Number(currentTarget.value);
    act.choose({ moment_ms: step >= steps ? null : from_ms + step * step_ms });
  };
  return html`<label class="scrub"
    ><span class="unseen">${t.history.moment}</span
    ><input
      type="range"
      min="0"
      max=${steps}
      step="1"
      value=${at}
      aria-valuetext=${choices.moment_ms === null ? t.now : clock(choices.moment_ms)}
      onInput=${slide}
    /><span class="age" aria-hidden="true"
      >${clock(from_ms)} – ${choices.moment_ms === null ? t.now : clock(choices.moment_ms)}</span
    ></label
  >`;
}

/** While a moment of the past is shown: which, and the way back. Commands are locked meanwhile. */
export function pastBox({ choices, act }: View) {
  const { moment_ms } = choices;
  if (moment_ms === null) return '';
  const back = () => act.choose({ moment_ms: null });
  return html`<section key="past" class="card notice past" role="status">
    <span><b>${t.history.past(moment_ms)}</b><span class="cap">${t.history.restNow}</span></span
    ><button type="button" class="btn small" onClick=${back}>${t.history.toNow}</button>
  </section>`;
}

/** What stands instead of values: that they are loaded, why they cannot be read, or that there are none. */
export function emptyText({ isLoading, fault }: { readonly isLoading: boolean; readonly fault: string }) {
  return fault !== '' ? t.history.fault(fault) : isLoading ? t.history.loading : t.history.noValues;
}
