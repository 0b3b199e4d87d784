/** Management without a shell: API keys, webhooks with what they gave up on, how long history is kept, and what was erased of it. */
import { field, isRecord, listIn, textIn } from '../../json.ts';
import { clock, duration, number } from '../../units.ts';
import { fieldText, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { card, lostBox, name, sentence } from '../parts/marks.ts';
import { keysCard } from './keys.ts';
import { input, read, secretBox, send, state, sureButton } from './managing.ts';
import type { View } from '../../types.d.ts';

export function manageScreen(view: View) {
  const has = (scope: string) => view.choices.session?.scopes.includes(scope) === true;
  return {
    heading: { title: t.nav.manage },
    body: html`<div class="page two">
      <div class="column">
        ${lostBox(view)} ${state.said !== '' && html`<p class="fault said" role="alert">${state.said}</p>`}
        ${has('keys') ? keysCard(view) : ''} ${has('webhooks') ? webhooks(view) : ''}
      </div>
      <div class="column">
        ${kitCard(view, has('assets:write'))} ${removalCard(view, has('history:erase'))}
        ${retention(view, has('history:erase'))} ${erasures(view, has('history:erase'))}
      </div>
    </div>`,
  };
}

/** What the kit that is shown is called, and its tags. */
function kitCard(view: View, mayChange: boolean) {
  const { choices } = view;
  const kit = choices.kits.find(({ id }) => id === choices.kit_id);
  if (!kit || !mayChange) return '';
  const tags = kit.tags ?? [];
  const submit = async (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = textIn(data.get('name')).trim();
    const words = textIn(data.get('tags'))
      .split(',')
      .map((tag) => tag.trim());
    const changed = await send(view, 'PATCH', `/kits/${kit.id}`, {
      // What stands there already may be what it calls itself: it would be its name for ever.
      ...(text !== kit.name && { name: text === '' ? null : text }),
      tags: words.filter((tag) => tag !== ''),
    });
    const named = { ...kit, ...(isRecord(changed) && changed) };
    choices.kits = choices.kits.map((each) => (each.id === kit.id ? named : each));
    view.act.changed();
  };
  return card(
    'kit-label',
    t.manage.kit,
    html`<form class="pad" key=${`${kit.id} ${kit.name} ${tags.join()}`} onSubmit=${submit}>
      ${input('name', t.manage.kitName, 'text', { value: kit.name, isOptional: true })}
      ${input('tags', t.manage.tags, 'text', { value: tags.join(', '), isOptional: true })}
      <button type="submit" class="btn">${t.manage.save}</button>
    </form>`,
  );
}

/** Removes the kit that is shown, once it is offline for good. */
function removalCard(view: View, mayErase: boolean) {
  const { choices, world } = view;
  const kit = choices.kits.find(({ id }) => id === choices.kit_id);
  if (!kit || !mayErase) return '';
  const isOnline = world.kit?.online === true;
  const remove = () => void send(view, 'DELETE', `/kits/${kit.id}`);
  return card(
    'kit-removal',
    t.manage.removeKit,
    html`<div class="pad">
      <p class="cap">${isOnline ? t.manage.removeLater : t.manage.removeAll}</p>
      ${!isOnline && sureButton(`remove ${kit.id}`, t.manage.removeKit, view, remove)}
    </div>`,
  );
}

function webhooks(view: View) {
  const { value, fault } = read(view, '/webhooks');
  const list = listIn(field(value, 'webhooks'));
  return card(
    'webhooks',
    t.manage.webhooks,
    html`${list.length === 0 ? html`<p class="empty">${fault ? sentence(fault) : t.manage.noWebhooks}</p>` : ''}
      <ul class="rows">
        ${list.map((hook) => webhook(hook, view))}
      </ul>
      ${webhookForm(view)}`,
  );
}

function webhook(hook: unknown, view: View) {
  const id = textIn(field(hook, 'id'));
  const counts = field(hook, 'counts');
  const n = (key: string) => Number(field(counts, key) ?? 0);
  const isOn = field(hook, 'status') === 'enabled';
  const path = `/webhooks/${id}`;
  const fault = textIn(field(hook, 'disabled_reason')) || textIn(field(hook, 'last_fault'));
  const open = () => {
    state.open = state.open === id ? '' : id;
    view.act.changed();
  };
  const test = async () => {
    const answer = await send(view, 'POST', `${path}/test`);
    if (answer === undefined) return;
    const reason = textIn(field(answer, 'reason'));
    state.tested = { id, text: reason === '' ? t.manage.testArrived : t.manage.testFailed(reason) };
    view.act.changed();
  };
  return html`<li key=${id} class="managed">
    <p>
      <b>${name(textIn(field(hook, 'label')))}</b>
      <span class="cap">${name(textIn(field(hook, 'url')))}</span>
    </p>
    <p class="cap">
      ${t.manage.hookState[isOn ? 'enabled' : 'disabled']},
      ${t.manage.counts({ delivered: number(n('delivered')), waiting: number(n('waiting')), dead: number(n('dead')) })}
    </p>
    ${fault !== '' && html`<p class="fault">${sentence(fault)}</p>`}
    ${state.tested.id === id && html`<p class="cap" role="status">${state.tested.text}</p>`}
    <div class="alarm-actions">
      <button type="button" class="btn small" onClick=${() => void test()}>${t.manage.test}</button>
      <button
        type="button"
        class="btn small"
        onClick=${() => void send(view, 'PATCH', path, { enabled: !isOn })}
      >
        ${isOn ? t.manage.disable : t.manage.enable}
      </button>
      ${n('dead') > 0 && html`<button type="button" class="btn small" aria-expanded=${String(state.open === id)} onClick=${open}>${t.manage.dead(n('dead'))}</button>`}
      ${sureButton(id, t.manage.remove, view, () => void send(view, 'DELETE', path))}
    </div>
    ${state.open === id && deadLetters(path, view)}
  </li>`;
}

/** What was given up, newest first, with the reason. */
function deadLetters(path: string, view: View) {
  const messages = listIn(field(read(view, `${path}/dead`).value, 'messages'));
  return html`<ul class="rows">
      ${messages.map((message) => {
        const kit = view.choices.kits.find(({ id }) => id === field(message, 'kit_id'));
        return html`<li key=${textIn(field(message, 'id'))} class="event">
          <time>${clock(Date.parse(textIn(field(message, 'observed_at'))))}</time
          ><span
            >${plain(field(message, 'type'))} ${kit && name(kit.name)}<span class="cap"
              >${sentence(textIn(field(message, 'reason')))}</span
            ></span
          >
        </li>`;
      })}
    </ul>
    <div class="alarm-actions">
      <button
        type="button"
        class="btn small main"
        onClick=${() => void send(view, 'POST', `${path}/dead/replay`, {})}
      >
        ${t.manage.replay}
      </button>
      ${sureButton(`${path} dead`, t.manage.discard, view, () => void send(view, 'DELETE', `${path}/dead`))}
    </div>`;
}

const hook_types = 'alarm file kit.offline kit.online kit.degraded asset link battery queue task.ended'.split(
  ' ',
);

function webhookForm(view: View) {
  const submit = async (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const types = data.getAll('types').map(String);
    const made = await send(view, 'POST', '/webhooks', {
      label: textIn(data.get('label')),
      url: textIn(data.get('url')),
      ...(types.length > 0 && { types }),
    });
    state.secret = textIn(field(made, 'secret'));
    if (state.secret !== '') form.reset();
    view.act.changed();
  };
  return html`<details class="managed">
    <summary class="sec">${t.manage.addWebhook}</summary>
    <form onSubmit=${submit}>
      ${input('label', t.manage.label, 'text')} ${input('url', t.manage.url, 'url')}
      <fieldset>
        <legend>${t.manage.types}</legend>
        <div class="checks">
          ${hook_types.map((type) => html`<label key=${type}><input type="checkbox" name="types" value=${type} /> ${type}</label>`)}
        </div>
      </fieldset>
      <button type="submit" class="btn main">${t.manage.addWebhook}</button>
      ${state.secret !== '' && secretBox(t.manage.secret, state.secret)}
    </form>
  </details>`;
}

const classes = ['event', 'position', 'feed', 'kit'] as const;

function retention(view: View, mayChange: boolean) {
  const kept = read(view, '/history/retention').value;
  if (!isRecord(kept)) return '';
  const daysOf = (key: string) => fieldText('', field(field(kept, 'days'), key));
  const submit = (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const days = Object.fromEntries(classes.map((key) => [key, Number(data.get(key))]));
    const max_mb = field(kept, 'kit_max_mb');
    void send(view, 'PUT', '/history/retention', {
      days,
      figures_days: Number(data.get('figures')),
      kit_max_mb: typeof max_mb === 'number' ? max_mb : null,
    });
  };
  return card(
    'retention',
    t.manage.retention,
    html`<form class="pad" key=${JSON.stringify(kept)} onSubmit=${submit}>
      <div class="checks">
        ${classes.map((key) => input(key, t.manage.days[key], 'number', { value: daysOf(key) }))}
        ${input('figures', t.manage.days.figures, 'number', { value: fieldText('', field(kept, 'figures_days')) })}
      </div>
      ${mayChange && html`<button type="submit" class="btn">${t.manage.keep}</button>`}
    </form>`,
  );
}

function erasures(view: View, mayErase: boolean) {
  const { choices, world, time_ms } = view;
  const path = `/kits/${choices.kit_id}/history`;
  const list = listIn(field(read(view, `${path}/erasures`).value, 'erasures'));
  const typed = choices.typed.get('erase before') ?? '';
  const type = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    choices.typed.set('erase before', currentTarget.value);
    view.act.changed();
  };
  const before = new Date(typed);
  const erase = () => void send(view, 'DELETE', `${path}?before=${before.toISOString()}`);
  return card(
    'erasures',
    t.manage.erasures(plain(world.kit?.kit_name ?? t.kit.noName)),
    html`${list.length === 0 ? html`<p class="empty">${t.manage.noErasures}</p>` : ''}
      <ul class="rows">
        ${list.map((each) => {
          const asset_id = textIn(field(each, 'asset_id'));
          const what = asset_id === '' ? t.manage.wholeKit : (world.assets.get(asset_id)?.name ?? asset_id);
          const erased_ms = Date.parse(textIn(field(each, 'erased_at')));
          return html`<li key=${asset_id} class="event">
            <span
              >${name(what)}<span class="cap"
                >${t.manage.erasedBefore({ time: clock(Date.parse(textIn(field(each, 'before')))), ago: duration(time_ms - erased_ms) })}</span
              ></span
            >
          </li>`;
        })}
      </ul>
      ${
        mayErase &&
        html`<div class="managed">
          <label class="input"
            ><span>${t.manage.eraseBefore}</span> <input type="datetime-local" value=${typed} onInput=${type}
          /></label>
          ${!Number.isNaN(before.getTime()) && sureButton('erase', t.manage.erase, view, erase)}
        </div>`
      }`,
  );
}
