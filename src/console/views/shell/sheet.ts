/** A sheet: from below on a phone, in the middle elsewhere. Escape and a tap beside it close it. */
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { Component, createRef } from 'preact';

interface Props {
  title: unknown;
  content: unknown;
  aside?: unknown;
  /** As large as the screen allows, for a picture. */
  isLarge?: boolean;
  onClose: () => void;
}

export class Sheet extends Component<Props, {}> {
  #dialog = createRef<HTMLDialogElement>();
  #before: Element | null = null;

  override componentDidMount() {
    this.#before = document.activeElement;
    this.#dialog.current?.showModal();
  }

  override componentWillUnmount() {
    this.#dialog.current?.close();
    if (this.#before instanceof HTMLElement) this.#before.focus();
  }

  #cancel = (event: Event) => {
    event.preventDefault();
    this.props.onClose();
  };

  #tap = (event: MouseEvent) => {
    if (event.target === this.#dialog.current) this.props.onClose();
  };

  override render() {
    const { title, content, aside, isLarge, onClose } = this.props;
    return html`<dialog
      ref=${this.#dialog}
      class=${isLarge ? 'large' : undefined}
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
