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
  return card(
    'keys',
    t.keys.title,
    html`${keys.length === 0 && fault ? html`<p class="empty">${sentence(fault)}</p>` : ''}
      <ul class="rows">
        ${keys.map((each) => keyRow(each, view))}
      </ul>
      ${keyForm(
        keys.find((each) => field(each, 'is_own') === true),
        view,
      )}`,
  );
}

function keyRow(key: unknown, view: View) {
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
    ${shown.id === text('id') && secretBox(t.keys.shownOnce, shown.key)}
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

function keyForm(own: unknown, view: View) {
  const { kits, session } = view.choices;
  const submit = async (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const day = textIn(data.get('expires'));
    const made = await send(view, 'POST', '/keys', {
      label: textIn(data.get('label')),
      scopes: data.getAll('scopes').map(String),
      ...(data.get('all') === null && kits.length > 1 && { kits: data.getAll('kits').map(String) }),
      // A day ends where the person is who names it (OWASP/Nest#4426).
      ...(day !== '' && { expires_at: new Date(`${day}T23:59:59`).toISOString() }),
    });
    if (made !== undefined) form.reset();
    keep(made, view);
  };
  const all = field(own, 'kits') === '*' ? t.keys.allKits : t.keys.kitsOfOwn;
  return html`<details class="managed">
    <summary class="sec">${t.keys.add}</summary>
    <form onSubmit=${submit}>
      ${input('label', t.manage.label, 'text')}
      <fieldset>
        <legend>${t.keys.scopes}</legend>
        <div class="checks">
          ${session?.scopes.map(
            (scope) =>
              html`<label key=${scope}
                ><input type="checkbox" name="scopes" value=${scope} defaultChecked=${scope === 'read'} />
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
            <label><input type="checkbox" name="all" defaultChecked /> ${all}</label>
          </div>
          <div class="checks some-kits">
            ${kits.map(
              ({ id, name: text }) =>
                html`<label key=${id}
                  ><input type="checkbox" name="kits" value=${id} /> ${name(text)}</label
                >`,
            )}
          </div>
        </fieldset>`
      }
      ${input('expires', t.keys.expires, 'date', { isOptional: true })}
      <button type="submit" class="btn main">${t.keys.add}</button>
    </form>
  </details>`;
}
