/** The actions of a person on the page. */
import { useLanguage, t } from '../words/words.js';
import { needsConfirmation, readJson } from '../views/command/payload.js';
import { ask, randomId, reasonOf, Refused } from './api.js';
import { field } from './json.js';
import { changeSetting, languageNow, themeNow } from './settings.js';
import { fly_command } from './target.js';

/** @import { Session } from './session.js' */
/** @import { Actions, Choices, JsonValue, Order, OrderState } from '../types.d.ts' */

/**
 * @typedef {object} Parts
 * @property {Choices} choices
 * @property {Session} session
 * @property {() => void} changed
 * @property {() => void} arrived
 */

/**
 * @param {Parts} parts
 * @returns {Actions}
 */
export function makeActions(parts) {
  const { choices, session, changed, arrived } = parts;
  return {
    changed,
    arrived,
    login: async (key) => session.login(key),
    logout: async () => session.logout(),
    note: (event) => {
      session.note(event);
      arrived();
    },
    ...sheetActions(parts),
    order: (order) => {
      if (!needsConfirmation(order.command)) return void send(parts, order);
      choices.confirming = order;
      return changed();
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

/**
 * @param {Parts} parts
 * @returns {Pick<Actions, 'openSheet' | 'closeSheet' | 'switchTheme' | 'setting' | 'setTarget' | 'clearTarget'>}
 */
function sheetActions({ choices, changed }) {
  return {
    openSheet: (name) => {
      choices.sheet = name;
      choices.search = '';
      choices.registering = '';
      changed();
    },
    closeSheet: () => {
      choices.sheet = null;
      choices.search = '';
      changed();
    },
    switchTheme: () => {
      changeSetting('theme', themeNow() === 'day' ? 'night' : 'day');
      changed();
    },
    setting: (name, value) => {
      changeSetting(name, value);
      if (name === 'language') void useLanguage(languageNow()).then(changed);
      changed();
    },
    setTarget: (target) => {
      choices.target = target;
      changed();
    },
    clearTarget: () => {
      choices.target = null;
      changed();
    },
  };
}

/**
 * Sends an order once. Its outcome is shown with its command.
 * @param {Parts} parts
 * @param {Order} order
 */
async function send(parts, order) {
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

/**
 * Sends an order of a control that is held, such as the PTZ pad: settles with the answer; a refusal is shown there.
 * @param {Parts} parts
 * @param {Order} order
 */
async function sendQuietly(parts, order) {
  const { choices, changed } = parts;
  const key = keyOf(order);
  try {
    await post(parts, order);
    if (choices.orders.delete(key)) changed();
  } catch (error) {
    setState(parts, order, refusal(parts, order, error));
  }
}

/**
 * @param {Parts} parts
 * @param {Order} order
 */
async function post({ choices }, { asset, command, payload }) {
  const path = `/api/kits/${choices.kit_id}/assets/${asset.id}/commands/${encodeURIComponent(command.name)}`;
  // The key makes a repetition by the browser or a proxy harmless; the page itself never repeats an order.
  await ask('POST', path, { body: { payload }, headers: { 'Idempotency-Key': randomId() } });
}

/**
 * @param {Parts} parts
 * @param {Order} order
 * @param {unknown} error
 * @returns {OrderState}
 */
function refusal({ session }, { command }, error) {
  if (!(error instanceof Refused)) return { state: 'unknown', text: t.order.unknown };
  session.note(`${command.name}: ${error.status}, request ${error.request_id}: ${error.message}`);
  return { state: 'refused', text: t.order.refused(error.message) };
}

/** @param {Order} order */
function keyOf({ asset, command }) {
  return `${asset.id} ${command.name}`;
}

/**
 * @param {Parts} parts
 * @param {Order} order
 * @param {OrderState} state
 */
function setState({ choices, changed }, order, state) {
  choices.orders.set(keyOf(order), state);
  changed();
}

/**
 * @param {Parts} parts
 * @param {string} task_id
 */
async function cancelTask({ choices, session, changed }, task_id) {
  if (!session.now().isInStep) return;
  try {
    await ask('POST', `/api/kits/${choices.kit_id}/tasks/${task_id}/cancel`);
    session.note(`cancellation of task ${task_id} requested`);
  } catch (error) {
    session.note(`task ${task_id} was not cancelled: ${reasonOf(error, t.order.noAnswer)}`);
  }
  changed();
}

/**
 * @param {Parts} parts
 * @param {Readonly<Record<string, JsonValue>>} body
 */
async function register({ choices, session, changed }, body) {
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

/**
 * @param {Parts} parts
 * @param {string} asset_id
 */
async function loadMetadata({ choices, changed }, asset_id) {
  choices.metadata.set(asset_id, { value: undefined, text: '' });
  try {
    const asset = await ask('GET', `/api/kits/${choices.kit_id}/assets/${asset_id}`);
    choices.metadata.set(asset_id, { value: field(asset, 'metadata'), text: '' });
    changed();
  } catch {
    // The page works without it; the next opening asks again.
  }
}

/**
 * @param {Parts} parts
 * @param {string} asset_id
 * @param {string} text a JSON object
 */
async function saveMetadata({ choices, changed }, asset_id, text) {
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
