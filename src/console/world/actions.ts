/** The actions of a person on the page. */
import { useLanguage, t } from '../words/words.ts';
import { needsConfirmation, readJson } from './payload.ts';
import { ask, randomId, reasonOf, Refused } from './api.ts';
import { field } from '../json.ts';
import { changeSetting, languageNow, themeNow } from '../settings.ts';
import { fly_command } from './places.ts';
import type { Session } from './session.ts';
import type { Actions, Choices, Order, OrderState, JsonValue } from '../types.d.ts';

interface Parts extends Pick<Actions, 'changed' | 'arrived'> {
  readonly choices: Choices;
  readonly session: Session;
}

export function makeActions(parts: Parts): Actions {
  const { choices, session, changed, arrived } = parts;
  const choose = (chosen: Partial<Choices>) => {
    Object.assign(choices, chosen);
    changed();
  };
  return {
    changed,
    arrived,
    choose,
    login: async (key) => session.login(key),
    logout: async () => session.logout(),
    note: (event) => {
      session.note(event);
      arrived();
    },
    openSheet: (name) => choose({ sheet: name, search: '', registering: '' }),
    closeSheet: () => choose({ sheet: null, search: '' }),
    switchTheme: () => {
      changeSetting('theme', themeNow() === 'day' ? 'night' : 'day');
      changed();
    },
    setting: (name, value) => {
      changeSetting(name, value);
      if (name === 'language') void useLanguage(languageNow()).then(changed);
      changed();
    },
    order: (order) => {
      if (needsConfirmation(order.command)) choose({ confirming: order });
      else void send(parts, order);
    },
    send: async (order) => send(parts, order),
    sendQuietly: async (order) => sendQuietly(parts, order),
    withdraw: (order, reason) => {
      choices.confirming = null;
      setState(parts, order, { state: 'refused', text: reason });
    },
    cancelTask: async (task_id) => cancelTask(parts, task_id),
    register: async (body) => register(parts, body),
    loadMetadata: (asset_id) => void loadMetadata(parts, asset_id),
    saveMetadata: async (asset_id, text) => saveMetadata(parts, asset_id, text),
  };
}

/** Sends an order once. Its outcome is shown with its command. */
async function send(parts: Parts, order: Order) {
  const { choices, session } = parts;
  choices.confirming = null;
  if (order.command.name === fly_command) choices.target = null;
  if (!session.now().isInStep) return setState(parts, order, { state: 'refused', text: t.order.noLink });
  setState(parts, order, { state: 'sending', text: t.order.sending });
  try {
    await post(parts, order);
    return setState(parts, order, { state: 'sent', text: t.order.accepted });
  } catch (error) {
    return setState(parts, order, refusal(parts, order, error));
  }
}

/** Sends an order of a control that is held, such as the PTZ pad: settles with the answer; a refusal is shown there. */
async function sendQuietly(parts: Parts, order: Order) {
  const { choices, changed } = parts;
  const key = keyOf(order);
  try {
    await post(parts, order);
    if (choices.orders.delete(key)) changed();
  } catch (error) {
    setState(parts, order, refusal(parts, order, error));
  }
}

async function post({ choices }: Parts, { asset, command, payload }: Order) {
  const path = `/api/kits/${choices.kit_id}/assets/${asset.id}/commands/${encodeURIComponent(command.name)}`;
  // The key makes a repetition by the browser or a proxy harmless; the page itself never repeats an order.
  await ask('POST', path, { body: { payload }, headers: { 'Idempotency-Key': randomId() } });
}

function refusal({ session }: Parts, { command }: Order, error: unknown): OrderState {
  if (!(error instanceof Refused)) return { state: 'unknown', text: t.order.unknown };
  session.note(`${command.name}: ${error.status}, request ${error.request_id}: ${error.message}`);
  return { state: 'refused', text: t.order.refused(error.message) };
}

function keyOf({ asset, command }: Order) {
  return `${asset.id} ${command.name}`;
}

function setState({ choices, changed }: Parts, order: Order, state: OrderState) {
  choices.orders.set(keyOf(order), state);
  changed();
}

async function cancelTask({ choices, session, changed }: Parts, task_id: string) {
  if (!session.now().isInStep) return;
  try {
    await ask('POST', `/api/kits/${choices.kit_id}/tasks/${task_id}/cancel`);
    session.note(`cancellation of task ${task_id} requested`);
  } catch (error) {
    session.note(`task ${task_id} was not cancelled: ${reasonOf(error, t.order.noAnswer)}`);
  }
  changed();
}

async function register({ choices, session, changed }: Parts, body: Readonly<Record<string, JsonValue>>) {
  try {
    const created = await ask('POST', `/api/kits/${choices.kit_id}/assets`, {
      body,
      headers: { 'Idempotency-Key': randomId() },
    });
    session.note(`asset ${String(field(created, 'id'))} registered`);
    choices.sheet = null;
  } catch (error) {
    choices.registering = t.order.refused(reasonOf(error, t.order.noAnswer));
  }
  changed();
}

async function loadMetadata({ choices, changed }: Parts, asset_id: string) {
  choices.metadata.set(asset_id, { value: undefined, text: '' });
  try {
    const asset = await ask('GET', `/api/kits/${choices.kit_id}/assets/${asset_id}`);
    choices.metadata.set(asset_id, { value: field(asset, 'metadata'), text: '' });
    changed();
  } catch {
    // The page works without it; the next opening asks again.
  }
}

/** @param text a JSON object */
async function saveMetadata({ choices, changed }: Parts, asset_id: string, text: string) {
  const known = choices.metadata.get(asset_id);
  const { payload: metadata } = readJson(text);
  try {
    const asset = await ask('PATCH', `/api/kits/${choices.kit_id}/assets/${asset_id}`, {
      body: { metadata },
    });
    choices.metadata.set(asset_id, { value: field(asset, 'metadata') ?? metadata, text: t.metadata.saved });
  } catch (error) {
    choices.metadata.set(asset_id, {
      value: known?.value,
      text: t.order.refused(reasonOf(error, t.order.noAnswer)),
    });
  }
  changed();
}
