/** Asks for confirmation of a risky command. For a high risk the button is held, or the name of the asset typed. */
import { html } from './html.js';
import { name } from './marks.js';
import { Component } from '../preact.js';
import { fieldText, label, plain } from '../world/text.js';

/** @import { Order } from '../types.d.ts' */

const hold_ms = 1_500;
/** A second tap of a double tap must not confirm. */
const ignored_ms = 600;
/** Without input for this long the question is withdrawn. */
const expiry_ms = 10_000;

/**
 * @typedef {object} Props
 * @property {Order} order
 * @property {string | undefined} locked why it cannot be sent now
 * @property {() => void} onConfirm
 * @property {(reason: string) => void} onCancel
 */

/** @extends {Component<Props, { isHeld: boolean, typed: string }>} */
export class Confirm extends Component {
  /**
   * @override
   * @type {{ isHeld: boolean, typed: string }}
   */
  state = { isHeld: false, typed: '' };
  /** @type {HTMLDialogElement | null} */
  #dialog = null;
  #opened_ms = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #expiry;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #hold;

  /** @override */
  componentDidMount() {
    this.#opened_ms = performance.now();
    this.#dialog?.showModal();
    this.#touched();
  }

  /** @override */
  componentWillUnmount() {
    clearTimeout(this.#expiry);
    clearTimeout(this.#hold);
    this.#dialog?.close();
  }

  #touched = () => {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => this.props.onCancel('Not sent: not confirmed in time.'), expiry_ms);
  };

  #cancel = () => this.props.onCancel('Not sent: cancelled.');

  /** @param {Event} event */
  #refuseClose = (event) => {
    event.preventDefault();
    this.#cancel();
  };

  #confirm = () => {
    if (this.props.locked !== undefined || performance.now() - this.#opened_ms < ignored_ms) return;
    this.props.onConfirm();
  };

  #press = () => {
    if (
      this.props.locked !== undefined ||
      performance.now() - this.#opened_ms < ignored_ms ||
      this.state.isHeld
    )
      return;
    this.setState({ isHeld: true });
    this.#hold = setTimeout(this.#confirm, hold_ms);
  };

  #release = () => {
    clearTimeout(this.#hold);
    if (this.state.isHeld) this.setState({ isHeld: false });
  };

  /** @param {KeyboardEvent} event */
  #pressKey = (event) => {
    if (event.key !== ' ' && event.key !== 'Enter') return;
    event.preventDefault();
    if (!event.repeat) this.#press();
  };

  /** @param {Event & { currentTarget: HTMLInputElement }} event */
  #type = ({ currentTarget }) => this.setState({ typed: currentTarget.value });

  /** @param {Event} event */
  #submitTyped = (event) => {
    event.preventDefault();
    if (this.state.typed.trim() === plain(this.props.order.asset.name).trim()) this.#confirm();
  };

  /** @override */
  render() {
    const { order, locked } = this.props;
    const { asset, command, payload } = order;
    const values = Object.entries(payload);
    const isHigh = command.risk_level === 'high';
    /** @param {HTMLDialogElement | null} element */
    const keep = (element) => {
      this.#dialog = element;
    };
    return html`<dialog
      ref=${keep}
      aria-labelledby="confirm-title"
      onCancel=${this.#refuseClose}
      onPointerDown=${this.#touched}
      onKeyDown=${this.#touched}
      onInput=${this.#touched}
    >
      <h2 id="confirm-title">${label(command.name)}: ${name(asset.name)}</h2>
      <p><bdi>${plain(command.description)}</bdi></p>
      ${
        values.length > 0 &&
        html`<dl class="facts">
          ${values.map(
            ([key, value]) =>
              html`<div class="fact">
                <dt>${label(key)}</dt>
                <dd><bdi>${fieldText(key, value)}</bdi></dd>
              </div>`,
          )}
        </dl>`
      }
      <p class="lock">${locked ?? (isHigh ? '▲▲ High risk' : 'Please confirm')}</p>
      <div class="answers">
        <button type="button" onClick=${this.#cancel} autofocus>Cancel</button>
        ${isHigh ? this.#holdButton() : html`<button type="button" class="go" onClick=${this.#confirm} aria-disabled=${String(locked !== undefined)}>Confirm</button>`}
      </div>
      ${isHigh && this.#nameForm()}
    </dialog>`;
  }

  #holdButton() {
    const { isHeld } = this.state;
    return html`<button
      type="button"
      class=${isHeld ? 'go hold held' : 'go hold'}
      aria-disabled=${String(this.props.locked !== undefined)}
      onPointerDown=${this.#press}
      onPointerUp=${this.#release}
      onPointerLeave=${this.#release}
      onPointerCancel=${this.#release}
      onKeyDown=${this.#pressKey}
      onKeyUp=${this.#release}
      onBlur=${this.#release}
    >
      <span>${isHeld ? 'Keep holding' : 'Hold to confirm'}</span>
    </button>`;
  }

  #nameForm() {
    const { asset } = this.props.order;
    return html`<form class="typed" onSubmit=${this.#submitTyped}>
      <label class="input"
        ><span>Or type its name, ${name(asset.name)}, and press Enter</span>
        <input type="text" autocomplete="off" value=${this.state.typed} onInput=${this.#type} />
      </label>
    </form>`;
  }
}
