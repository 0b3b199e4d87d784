/** A sheet: from below on a phone, in the middle elsewhere. Escape and a tap beside it close it. */
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { icon } from '../parts/icon.js';
import { Component } from '../../preact.js';

/** @typedef {{ title: unknown, content: unknown, aside?: unknown, onClose: () => void }} Props */

/** @extends {Component<Props, {}>} */
export class Sheet extends Component {
  /** @type {HTMLDialogElement | null} */
  #dialog = null;
  /** @type {Element | null} */
  #before = null;

  /** @override */
  componentDidMount() {
    this.#before = document.activeElement;
    this.#dialog?.showModal();
  }

  /** @override */
  componentWillUnmount() {
    this.#dialog?.close();
    if (this.#before instanceof HTMLElement) this.#before.focus();
  }

  /** @param {HTMLDialogElement | null} element */
  #keep = (element) => {
    this.#dialog = element;
  };

  /** @param {Event} event */
  #cancel = (event) => {
    event.preventDefault();
    this.props.onClose();
  };

  /** @param {MouseEvent} event */
  #tap = (event) => {
    if (event.target === this.#dialog) this.props.onClose();
  };

  /** @override */
  render() {
    const { title, content, aside, onClose } = this.props;
    return html`<dialog
      ref=${this.#keep}
      aria-labelledby="sheet-title"
      onCancel=${this.#cancel}
      onClick=${this.#tap}
    >
      <div class="sheet">
        <header>
          <h2 class="title" id="sheet-title">${title}</h2>
          ${aside}
          <button type="button" class="icon-btn" aria-label=${t.close} onClick=${onClose}>
            ${icon('x')}
          </button>
        </header>
        ${content}
      </div>
    </dialog>`;
  }
}
