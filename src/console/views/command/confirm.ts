/** Asks for confirmation of a risky command. For a high risk the button is held, or the name of the asset typed. */
import { fieldText, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { name } from '../parts/marks.ts';
import { Component, createRef } from 'preact';
import { lockReason, riskMark, titleOf, valueName } from './about.ts';
import type { Order, View } from '../../types.d.ts';

/** A second tap of a double tap must not confirm. */
const ignored_ms = 600;
/** Without input for this long the question is withdrawn. */
const expiry_ms = 10_000;

interface Props {
  order: Order;
  /** Why it cannot be sent now. */
  locked: string | undefined;
  onConfirm: () => void;
  onCancel: (reason: string) => void;
}

/** The question about the order that waits for it. */
export function question(view: View) {
  const { confirming } = view.choices;
  if (!confirming) return '';
  return html`<${Confirm}
    key=${`${confirming.asset.id} ${confirming.command.name}`}
    order=${confirming}
    locked=${lockReason(view, confirming.asset)}
    onConfirm=${() => void view.act.send(confirming)}
    onCancel=${(reason: string) => view.act.withdraw(confirming, reason)}
  />`;
}

class Confirm extends Component<Props, { typed: string }> {
  override state: { typed: string } = { typed: '' };
  #dialog = createRef<HTMLDialogElement>();
  #opened_ms = 0;
  #expiry: ReturnType<typeof setTimeout> | undefined;

  override componentDidMount() {
    this.#opened_ms = performance.now();
    this.#dialog.current?.showModal();
    this.#touched();
  }

  override componentWillUnmount() {
    clearTimeout(this.#expiry);
    this.#dialog.current?.close();
  }

  #touched = () => {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => this.props.onCancel(t.order.expired), expiry_ms);
  };

  #cancel = () => this.props.onCancel(t.order.cancelled);

  #refuseClose = (event: Event) => {
    event.preventDefault();
    this.#cancel();
  };

  #confirm = () => {
    if (this.props.locked !== undefined || performance.now() - this.#opened_ms < ignored_ms) return;
    this.props.onConfirm();
  };

  #type = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
    this.setState({ typed: currentTarget.value });

  #submitTyped = (event: Event) => {
    event.preventDefault();
    if (this.state.typed.trim() === plain(this.props.order.asset.name).trim()) this.#confirm();
  };

  override render() {
    const { order, locked } = this.props;
    const { asset, command } = order;
    const isHigh = command.risk_level === 'high';
    return html`<dialog
      ref=${this.#dialog}
      aria-labelledby="confirm-title"
      onCancel=${this.#refuseClose}
      onPointerDown=${this.#touched}
      onKeyDown=${this.#touched}
      onInput=${this.#touched}
    >
      <div class="sheet">
        <div class="head">
          <h2 id="confirm-title" class="title">
            ${t.confirm.question({ command: titleOf(command), asset: plain(asset.name) })}
          </h2>
          ${riskMark(command)}
        </div>
        <p class="cap"><bdi>${plain(command.description)}</bdi></p>
        ${this.#values()} ${locked !== undefined && html`<p class="lock">${locked}</p>`}
        <div class="answers">
          <button type="button" class="btn plain" onClick=${this.#cancel} autofocus>${t.cancel}</button>
          ${isHigh ? html`<${HoldButton} text=${t.hold.toConfirm} isLocked=${locked !== undefined} onHeld=${this.props.onConfirm} />` : html`<button type="button" class="btn main" onClick=${this.#confirm} aria-disabled=${String(locked !== undefined)}>${titleOf(command)}</button>`}
        </div>
        ${isHigh && this.#nameForm()}
      </div>
    </dialog>`;
  }

  #values() {
    const values = Object.entries(this.props.order.payload);
    if (values.length === 0) return '';
    return html`<dl class="facts small">
      ${values.map(
        ([key, value]) =>
          html`<div class="fact">
            <dt>${valueName(key)}</dt>
            <dd><bdi>${fieldText(key, value)}</bdi></dd>
          </div>`,
      )}
    </dl>`;
  }

  #nameForm() {
    const { asset } = this.props.order;
    return html`<form class="typed" onSubmit=${this.#submitTyped}>
      <label class="input"
        ><span>${t.confirm.typeName} <b>${name(asset.name)}</b></span>
        <input type="text" autocomplete="off" value=${this.state.typed} onInput=${this.#type} />
      </label>
    </form>`;
  }
}

const hold_ms = 1_500;
/** A second tap of a double tap must not start the hold. */
const deaf_ms = 600;

interface HoldProps {
  text: string;
  isLocked: boolean;
  onHeld: () => void;
}

/** A button that acts after it was held for 1.5 s, by finger, mouse or keyboard. */
class HoldButton extends Component<HoldProps, { isHeld: boolean }> {
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
