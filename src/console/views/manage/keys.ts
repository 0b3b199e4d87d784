/** API keys: those that this key may give away, a new one, and the secret of the last, which is shown this once. */
import { field, isRecord, listIn, textIn } from '../../json.ts';
import { clock } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { ageText, card, name, sentence } from '../parts/marks.ts';
import { input, read, secretBox, send, sureButton } from './managing.ts';
import type { View } from '../../types.d.ts';

/** The key that was made last, until another screen is opened. */
let shown = { id: '', key: '' };

export function keysCard(view: View) {
  const { value, fault } = read(view, '/keys');
  const keys = listIn(field(value, 'keys'));
  const own = keys.find((each) => field(each, 'is_own') === true);
  return card(
    'keys',
    t.keys.title,
    html`${keys.length === 0 && fault ? html`<p class="empty">${sentence(fault)}</p>` : ''}
      <ul class="rows">
        ${keys.map((each) => keyRow(each, own, view))}
      </ul>
      ${keyForm(own, view)}`,
  );
}

function keyRow(key: unknown, own: unknown, view: View) {
  const text = (what: string) => textIn(field(key, what));
  const at = (what: string) => Date.parse(text(what));
  const isOwn = field(key, 'is_own') === true;
  const isOver = at('expires_at') <= view.time_ms;
  const path = `/keys/${text('id')}`;
  const rotate = async () => keep(await send(view, 'POST', `${path}/rotate`), view);
  const about = [
    text('used_at') === ''
      ? !isOwn && t.keys.used('')
      : t.keys.used(ageText(Math.max(0, view.time_ms - at('used_at')))),
    text('expires_at') !== '' && (isOver ? t.keys.over : t.keys.until)(clock(at('expires_at'))),
    text('old_secret_expires_at') !== '' && t.keys.oldUntil(clock(at('old_secret_expires_at'))),
  ];
  return html`<li key=${text('id')} class="managed">
    <p>
      <b>${name(text('label'))}</b> ${isOwn && html`<span class="tag">${t.keys.own}</span>`}<code class="cap"
        >kc_${text('id')}_…</code
      >
    </p>
    <p class="cap">${kitsText(field(key, 'kits'), view)}: ${listIn(field(key, 'scopes')).join(', ')}</p>
    <p class="cap">${about.filter((part) => part !== false).join(', ')}</p>
    <div class="alarm-actions">
      ${!isOver && sureButton(`${path} rotate`, t.keys.rotate, view, () => void rotate())}
      ${!isOwn && sureButton(path, t.keys.revoke, view, () => void send(view, 'DELETE', path))}
    </div>
    ${shown.id === text('id') && secretBox(t.keys.shownOnce, shown.key)} ${!isOwn && keyForm(own, view, key)}
  </li>`;
}

function kitsText(kits: unknown, { choices }: View) {
  if (kits === '*') return t.keys.allKits;
  const ids = listIn(kits);
  const [only] = ids;
  if (ids.length > 1) return t.keys.kits(ids.length);
  return name(choices.kits.find(({ id }) => id === only)?.name ?? textIn(only));
}

/** Keeps the secret of a new key where it is shown. */
function keep(made: unknown, { act }: View) {
  if (isRecord(made)) shown = { id: textIn(made['id']), key: textIn(made['key']) };
  act.changed();
}

/** Makes a key, or changes this one: its secret stays. */
function keyForm(own: unknown, view: View, key?: unknown) {
  const { kits, session } = view.choices;
  const held = (what: string) => field(key, what);
  const ofAll = key === undefined || held('kits') === '*';
  // Each use of the key draws it anew, and what a person has typed stays.
  const state_of = JSON.stringify(['id', 'label', 'scopes', 'kits', 'expires_at'].map(held));
  const lastDay = dayOf(textIn(held('expires_at')));
  const submit = async (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const day = textIn(data.get('expires'));
    // A day ends where the person is who names it (OWASP/Nest#4426).
    const expires_at = day === '' ? null : new Date(`${day}T23:59:59`).toISOString();
    const isSome = data.get('all') === null && kits.length > 1;
    const rights = {
      label: textIn(data.get('label')),
      scopes: data.getAll('scopes').map(String),
      kits: isSome ? data.getAll('kits').map(String) : ofOwn(own),
    };
    if (key === undefined) {
      const made = await send(view, 'POST', '/keys', {
        ...rights,
        ...(expires_at !== null && { expires_at }),
      });
      if (made !== undefined) form.reset();
      keep(made, view);
    } else
      await send(view, 'PATCH', `/keys/${textIn(held('id'))}`, {
        ...rights,
        ...(day !== lastDay && { expires_at }),
      });
  };
  const all = field(own, 'kits') === '*' ? t.keys.allKits : t.keys.kitsOfOwn;
  const title = key === undefined ? t.keys.add : t.keys.change;
  return html`<details class="managed" key=${state_of}>
    <summary class="sec">${title}</summary>
    <form onSubmit=${submit}>
      ${input('label', t.manage.label, 'text', { value: textIn(held('label')) })}
      <fieldset>
        <legend>${t.keys.scopes}</legend>
        <div class="checks">
          ${session?.scopes.map(
            (scope) =>
              html`<label key=${scope}
                ><input
                  type="checkbox"
                  name="scopes"
                  value=${scope}
                  defaultChecked=${key === undefined ? scope === 'read' : listIn(held('scopes')).includes(scope)}
                />
                ${t.keys.scope[scope] ?? scope}</label
              >`,
          )}
        </div>
      </fieldset>
      ${
        kits.length > 1 &&
        html`<fieldset>
          <legend>${t.nav.kits}</legend>
          <div class="checks all-kits">
            <label><input type="checkbox" name="all" defaultChecked=${ofAll} /> ${all}</label>
          </div>
          <div class="checks some-kits">
            ${kits.map(
              ({ id, name: text }) =>
                html`<label key=${id}
                  ><input
                    type="checkbox"
                    name="kits"
                    value=${id}
                    defaultChecked=${listIn(held('kits')).includes(id)}
                  />
                  ${name(text)}</label
                >`,
            )}
          </div>
        </fieldset>`
      }
      ${input('expires', t.keys.expires, 'date', { isOptional: true, value: lastDay })}
      <button type="submit" class="btn main">${key === undefined ? t.keys.add : t.manage.save}</button>
    </form>
  </details>`;
}

/** The kits of the key of this page, which it may give away. */
function ofOwn(own: unknown): string | string[] {
  const kits = field(own, 'kits');
  return kits === '*' ? kits : listIn(kits).map(textIn);
}

/** The day here on which it is this time, as an input of days has it. */
function dayOf(time: string): string {
  if (time === '') return '';
  const at = new Date(time);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}
