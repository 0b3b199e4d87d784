/** A button that acts after it was held for 1.5 s, by finger, mouse or keyboard. */
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { Component } from '../../preact.js';

const hold_ms = 1_500;
/** A second tap of a double tap must not start the hold. */
const deaf_ms = 600;

/** @typedef {{ text: string, isLocked: boolean, onHeld: () => void }} Props */

/** @extends {Component<Props, { isHeld: boolean }>} */
export class HoldButton extends Component {
  /**
   * @override
   * @type {{ isHeld: boolean }}
   */
  state = { isHeld: false };
  #mounted_ms = performance.now();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** The finger or mouse that holds. */
  #pointer = -1;

  /** @override */
  componentWillUnmount() {
    clearTimeout(this.#timer);
  }

  /**
   * A lock that comes while the button is held, such as a lost link, ends the hold.
   * @override
   */
  componentDidUpdate() {
    if (this.props.isLocked && this.state.isHeld) this.#release();
  }

  /** @param {PointerEvent} event */
  #pressPointer = (event) => {
    // A second finger ends the hold: it was not one deliberate press.
    if (this.state.isHeld) return this.#release();
    this.#pointer = event.pointerId;
    return this.#press();
  };

  #press = () => {
    if (this.props.isLocked || this.state.isHeld || performance.now() - this.#mounted_ms < deaf_ms) return;
    this.setState({ isHeld: true });
    this.#timer = setTimeout(() => {
      this.setState({ isHeld: false });
      if (!this.props.isLocked) this.props.onHeld();
    }, hold_ms);
  };

  #release = () => {
    clearTimeout(this.#timer);
    if (this.state.isHeld) this.setState({ isHeld: false });
  };

  /** @param {PointerEvent} event */
  #releasePointer = (event) => {
    if (event.pointerId === this.#pointer) this.#release();
  };

  /** @param {KeyboardEvent} event */
  #pressKey = (event) => {
    if (event.key === 'Escape') this.#release();
    if (event.key !== ' ' && event.key !== 'Enter') return;
    event.preventDefault();
    if (!event.repeat) this.#press();
  };

  /** @override */
  render() {
    const { text, isLocked } = this.props;
    const { isHeld } = this.state;
    return html`<button
      type="button"
      class=${isHeld ? 'btn main hold held' : 'btn main hold'}
      aria-disabled=${String(isLocked)}
      onPointerDown=${this.#pressPointer}
      onPointerUp=${this.#releasePointer}
      onPointerLeave=${this.#releasePointer}
      onPointerCancel=${this.#release}
      onContextMenu=${(/** @type {Event} */ event) => event.preventDefault()}
      onKeyDown=${this.#pressKey}
      onKeyUp=${this.#release}
      onBlur=${this.#release}
    >
      <span>${isHeld ? t.hold.keep : text}</span>
    </button>`;
  }
}
