/** The actions of a person on the page. */
import { ask, randomId, Refused } from './api.js';
import { needsConfirmation } from '../views/command-view.js';

/** @import { Session } from './session.js' */
/** @import { Actions, Choices, Order, OrderState } from '../types.d.ts' */

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
      setState(parts, order, { state: 'refused', text: reason });
    },
    cancelTask: async (task_id) => cancelTask(parts, task_id),
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
  if (!session.now().isInStep) {
    return setState(parts, order, {
      state: 'refused',
      text: 'Not sent: this page has no link to the service.',
    });
  }
  setState(parts, order, { state: 'sending', text: 'Sending' });
  const { asset, command, payload } = order;
  const path = `/api/kits/${choices.kit_id}/assets/${asset.id}/commands/${encodeURIComponent(command.name)}`;
  try {
    // The key makes a repetition by the browser or a proxy harmless; the page itself never repeats an order.
    await ask('POST', path, { body: { payload }, headers: { 'Idempotency-Key': randomId() } });
    return setState(parts, order, { state: 'sent', text: 'Accepted by the service' });
  } catch (error) {
    if (!(error instanceof Refused)) {
      const text = 'No answer: the outcome is unknown. Check the tasks before you send it again.';
      return setState(parts, order, { state: 'unknown', text });
    }
    session.note(`${command.name}: ${error.status}, request ${error.request_id}: ${error.message}`);
    return setState(parts, order, { state: 'refused', text: `Not sent: ${error.message}` });
  }
}

/**
 * @param {Parts} parts
 * @param {Order} order
 * @param {OrderState} state
 */
function setState({ choices, changed }, { asset, command }, state) {
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
    session.note(`cancellation of task ${task_id} requested`);
  } catch (error) {
    const reason = error instanceof Refused ? error.message : 'no answer';
    session.note(`task ${task_id} was not cancelled: ${reason}`);
  }
  changed();
}
