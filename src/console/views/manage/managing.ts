/** What the parts of management share: reading, changing, and what a person sees of it. */
import { ask, reasonOf } from '../../world/api.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import type { JsonValue, View } from '../../types.d.ts';

const refresh_ms = 15_000;
/** The second press of a button that cannot be undone comes within this time. */
const sure_ms = 5_000;

/** What this page did last, and which button waits for its second press. */
export const state = { turn: 0, said: '', secret: '', sure: '', open: '', tested: { id: '', text: '' } };

/** @param path below `/api`; read again every 15 s, and after each change */
export function read(view: View, path: string) {
  const turn = Math.floor(view.time_ms / refresh_ms);
  return view.history.read(view, `manage ${path}`, `/api${path}#${turn} ${state.turn}`);
}

export async function send(
  { act }: View,
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: JsonValue,
): Promise<unknown> {
  state.said = '';
  let answer: unknown;
  try {
    answer = await ask(method, `/api${path}`, body === undefined ? {} : { body });
  } catch (error) {
    state.said = t.order.refused(reasonOf(error, t.order.noAnswer));
  }
  state.turn += 1;
  act.changed();
  return answer;
}

/** A button that is pressed twice: what it does cannot be undone. */
export function sureButton(id: string, label: string, { act }: View, deed: () => void) {
  const isSure = state.sure === id;
  const press = () => {
    state.sure = isSure ? '' : id;
    if (isSure) deed();
    else
      setTimeout(() => {
        if (state.sure === id) state.sure = '';
        act.changed();
      }, sure_ms);
    act.changed();
  };
  return html`<button type="button" key=${id} class="btn small" onClick=${press}>
    ${isSure ? t.manage.sure : label}
  </button>`;
}

/** Has this value until a person types: `value` would put it back at each drawing. */
export function input(
  key: string,
  label: string,
  type: string,
  { value = '', isOptional = false }: { readonly value?: string; readonly isOptional?: boolean } = {},
) {
  return html`<label class="input"
    ><span>${label}</span>
    <input name=${key} type=${type} required=${!isOptional} defaultValue=${value} autocomplete="off"
  /></label>`;
}

/** A secret that is shown this once: a field to copy from, since pages on plain http have no clipboard of their own (it-tools#342). */
export function secretBox(label: string, secret: string) {
  const select = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => currentTarget.select();
  return html`<div class="secret" role="status">
    <label class="input"><span>${label}</span><input readonly value=${secret} onFocus=${select} /></label>
  </div>`;
}
