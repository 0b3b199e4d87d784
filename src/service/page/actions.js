/** What a person can do on the page beside looking at it. */
import { ask, randomId, Refused } from './api.js';
import { needsConfirmation } from './command-view.js';

/** @import { Session } from './session.js' */
/** @import { Actions, Choices, Order, OrderState } from './types.d.ts' */

/**
 * @typedef {object} Parts
 * @property {Choices} choices
 * @property {Session} session
 * @property {() => void} changed
 */

/**
 * @param {Parts} parts
 * @returns {Actions}
 */
export function makeActions(parts) {
  const { choices, session, changed } = parts;
  return {
    changed,
    login: async (key) => session.login(key),
    logout: async () => session.logout(),
    note: (event) => {
      session.note(event);
      changed();
    },
    chooseKit: (kit_id) => {
      choices.open_asset = null;
      choices.video_asset = null;
      session.watch(kit_id);
    },
    order: (order) => {
      if (!needsConfirmation(order.command)) return void send(parts, order);
      choices.confirming = order;
      return changed();
    },
    send: async (order) => send(parts, order),
    withdraw: (order, reason) => {
      choices.confirming = null;
      say(parts, order, { state: 'refused', text: reason });
    },
    cancelTask: async (task_id) => cancelTask(parts, task_id),
  };
}

/**
 * Sends an order once. What becomes of it stands in the row of its command.
 * @param {Parts} parts
 * @param {Order} order
 */
async function send(parts, order) {
  const { choices, session } = parts;
  choices.confirming = null;
  if (!session.now().isInStep) {
    return say(parts, order, { state: 'refused', text: 'Not sent: this page had no link to the service.' });
  }
  say(parts, order, { state: 'sending', text: 'Sending' });
  const { asset, command, payload } = order;
  const path = `/api/kits/${choices.kit_id}/assets/${asset.id}/commands/${encodeURIComponent(command.name)}`;
  try {
    // The key makes a repetition by the browser or a proxy harmless; the page itself never repeats an order.
    await ask('POST', path, { body: { payload }, headers: { 'Idempotency-Key': randomId() } });
    return say(parts, order, { state: 'sent', text: 'Taken by the service' });
  } catch (error) {
    if (!(error instanceof Refused)) {
      const text = 'No answer: nobody knows whether it was sent. Look at the tasks before you send it again.';
      return say(parts, order, { state: 'unknown', text });
    }
    session.note(`${command.name}: ${error.status}, request ${error.request_id}: ${error.message}`);
    return say(parts, order, { state: 'refused', text: `Not sent: ${error.message}` });
  }
}

/**
 * @param {Parts} parts
 * @param {Order} order
 * @param {OrderState} state
 */
function say({ choices, changed }, { asset, command }, state) {
  choices.orders.set(`${asset.id} ${command.name}`, state);
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
    session.note(`asked the kit to stop task ${task_id}`);
  } catch (error) {
    const reason = error instanceof Refused ? error.message : 'no answer';
    session.note(`task ${task_id} was not cancelled: ${reason}`);
  }
  changed();
}
