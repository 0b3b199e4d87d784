/** A button that acts after it was held for 1.5 s, by finger, mouse or keyboard. */
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { Component } from '../../preact.js';

const hold_ms = 1_500;
/** A second tap of a double tap must not start the hold. */
const deaf_ms = 600;

interface Props {
  text: string;
  isLocked: boolean;
  onHeld: () => void;
}

export class HoldButton extends Component<Props, { isHeld: boolean }> {
  override state: { isHeld: boolean } = { isHeld: false };
  #mounted_ms = performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The finger or mouse that holds. */
  #pointer = -1;

  override componentWillUnmount() {
    clearTimeout(this.#timer);
  }

  /** A lock that comes while the button is held, such as a lost link, ends the hold. */
  override componentDidUpdate() {
    if (this.props.isLocked && this.state.isHeld) this.#release();
  }

  #pressPointer = (event: PointerEvent) => {
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

  #releasePointer = (event: PointerEvent) => {
    if (event.pointerId === this.#pointer) this.#release();
  };

  #pressKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') this.#release();
    if (event.key !== ' ' && event.key !== 'Enter') return;
    event.preventDefault();
    if (!event.repeat) this.#press();
  };

  override render() {
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
      onContextMenu=${(event: Event) => event.preventDefault()}
      onKeyDown=${this.#pressKey}
      onKeyUp=${this.#release}
      onBlur=${this.#release}
    >
      <span>${isHeld ? t.hold.keep : text}</span>
    </button>`;
  }
}
