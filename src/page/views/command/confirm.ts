/** Asks for confirmation of a risky command. For a high risk the button is held, or the name of the asset typed. */
import { fieldText, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { name } from '../parts/marks.ts';
import { Component } from '../../preact.js';
import { lockReason, riskMark, titleOf, valueName } from './about.ts';
import { HoldButton } from './hold-button.ts';
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
  #dialog: HTMLDialogElement | null = null;
  #opened_ms = 0;
  #expiry: ReturnType<typeof setTimeout> | undefined;

  override componentDidMount() {
    this.#opened_ms = performance.now();
    this.#dialog?.showModal();
    this.#touched();
  }

  override componentWillUnmount() {
    clearTimeout(this.#expiry);
    this.#dialog?.close();
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

  #keep = (element: HTMLDialogElement | null) => {
    this.#dialog = element;
  };

  override render() {
    const { order, locked } = this.props;
    const { asset, command } = order;
    const isHigh = command.risk_level === 'high';
    return html`<dialog
      ref=${this.#keep}
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
