/**
 * Moves a camera while an arrow is held. One owner, a pointer or a key, holds at a time; `stop` is sent after the answer to
 * the move has settled, also when the move failed, so that it never overtakes it.
 */
import { rest } from '../../world/rest.ts';
import { repeatOf } from '../../world/payload.ts';
import { field } from '../../json.ts';
import { t } from '../../words/words.ts';
import { lockReason } from '../command/about.ts';
import { html } from '../parts/html.ts';
import { Component } from 'preact';
import type { CommandDefinition, JsonValue, LiveAsset, View } from '../../types.d.ts';

type Direction = 'up' | 'right' | 'down' | 'left';
interface Props {
  asset: LiveAsset;
  command: CommandDefinition;
  view: View;
}

const directions: readonly (readonly [Direction, number])[] = [
  ['up', 0],
  ['right', 90],
  ['down', 180],
  ['left', 270],
];
const keys: Readonly<Record<string, Direction>> = {
  ArrowUp: 'up',
  ArrowRight: 'right',
  ArrowDown: 'down',
  ArrowLeft: 'left',
};

export class PtzPad extends Component<Props, { held: Direction | null; speed: number | null }> {
  override state: { held: Direction | null; speed: number | null } = { held: null, speed: null };
  /** Who holds: `pointer 3`, `key ArrowUp`, or empty. */
  #owner = '';
  #mounted = new AbortController();
  /** Ends the hold that runs. */
  #hold = new AbortController();
  #running: Promise<void> = Promise.resolve();

  override componentDidMount() {
    const { signal } = this.#mounted;
    addEventListener('blur', () => this.#release(), { signal });
    document.addEventListener('visibilitychange', () => this.#release(), { signal });
    addEventListener('keydown', (event) => event.key === 'Escape' && this.#release(), { signal });
  }

  /** A lost link ends the hold: the service no longer receives what keeps it alive. */
  override componentDidUpdate() {
    if (this.#isLocked() && this.#owner !== '') this.#release();
  }

  override componentWillUnmount() {
    this.#release();
    this.#mounted.abort();
  }

  #isLocked() {
    return lockReason(this.props.view, this.props.asset) !== undefined;
  }

  #press(owner: string, direction: Direction) {
    if (this.#owner !== '' || this.#isLocked()) return;
    this.#owner = owner;
    this.#hold = new AbortController();
    this.setState({ held: direction });
    const before = this.#running;
    this.#running = this.#move(direction, this.#hold.signal, before);
  }

  /**
   * Sends the move, again while it is held, and then the stop.
   * @param before the hold before this one, with its stop
   */
  async #move(direction: Direction, released: AbortSignal, before: Promise<void>) {
    await before;
    while (!released.aborted) {
      const sent_ms = performance.now();
      await this.#send(direction);
      await rest(sent_ms + repeatOf(this.props.command) - performance.now(), released);
    }
    await this.#send('stop');
  }

  /** @param owner left out: the current owner */
  #release(owner: string = this.#owner) {
    if (owner !== this.#owner || owner === '') return;
    this.#owner = '';
    this.#hold.abort();
    this.setState({ held: null });
  }

  async #send(direction: Direction | 'stop') {
    const { asset, command, view } = this.props;
    const speed = this.state.speed ?? speedOf(command)?.initial;
    const payload: Record<string, JsonValue> =
      speed === undefined || direction === 'stop' ? { direction } : { direction, speed };
    await view.act.sendQuietly({ asset, command, payload });
  }

  #stop = () => {
    this.#release();
    const before = this.#running;
    this.#running = before.then(async () => this.#send('stop'));
  };

  #keyDown = (event: KeyboardEvent) => {
    const direction = keys[event.key];
    if (!direction) return;
    event.preventDefault();
    if (!event.repeat) this.#press(`key ${event.key}`, direction);
  };

  #keyUp = (event: KeyboardEvent) => this.#release(`key ${event.key}`);

  #pointerUp = (event: PointerEvent) => this.#release(`pointer ${event.pointerId}`);

  #pointerDown(direction: Direction): (event: PointerEvent & { currentTarget: Element }) => void {
    return (event) => {
      event.preventDefault();
      // Leaving the arrow keeps the hold; lifting the finger anywhere ends it.
      event.currentTarget.setPointerCapture(event.pointerId);
      this.#press(`pointer ${event.pointerId}`, direction);
    };
  }

  override render() {
    const { held } = this.state;
    const isLocked = this.#isLocked();
    return html`<div class="ptz">
      <div class="pad-and-stop">
        <svg
          class=${isLocked ? 'ptz-pad locked' : 'ptz-pad'}
          viewBox="-100 -100 200 200"
          tabindex="0"
          role="application"
          aria-label=${t.camera.pad}
          aria-disabled=${String(isLocked)}
          onKeyDown=${this.#keyDown}
          onKeyUp=${this.#keyUp}
          onBlur=${() => this.#release()}
        >
          ${directions.map(
            ([direction, angle]) =>
              html`<g
                key=${direction}
                data-direction=${direction}
                class=${held === direction ? 'on' : ''}
                transform=${`rotate(${angle})`}
                onPointerDown=${this.#pointerDown(direction)}
                onPointerUp=${this.#pointerUp}
                onPointerCancel=${this.#pointerUp}
                onLostPointerCapture=${this.#pointerUp}
              >
                <path class="s" d="M-66.5-66.5A94 94 0 0 1 66.5-66.5L27-27A38 38 0 0 0-27-27Z" />
                <path class="a" d="M-10-56 0-66 10-56" />
              </g>`,
          )}
        </svg>
        <button type="button" class="ptz-stop" onClick=${this.#stop}>${t.camera.stop}</button>
      </div>
      <div class="ptz-side">
        ${this.#speed()}
        <p class="cap">${t.camera.padHint}</p>
      </div>
    </div>`;
  }

  #speed() {
    const range = speedOf(this.props.command);
    if (!range) return '';
    const now = this.state.speed ?? range.initial;
    const slide = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
      this.setState({ speed: Number(currentTarget.value) });
    return html`<label class="speed"
      ><span>${t.camera.speed} <b>${t.camera.speedOf({ now, max: range.max })}</b></span>
      <input type="range" min=${range.min} max=${range.max} step=${range.step} value=${now} onInput=${slide}
    /></label>`;
  }
}

function speedOf(command: CommandDefinition) {
  const schema = field(field(command.input_schema, 'properties'), 'speed');
  const number = (key: string) => {
    const value = field(schema, key);
    return typeof value === 'number' ? value : undefined;
  };
  const min = number('minimum');
  const max = number('maximum');
  if (min === undefined || max === undefined) return undefined;
  const isWhole = field(schema, 'type') === 'integer';
  return { min, max, step: isWhole ? 1 : (max - min) / 20, initial: number('default') ?? (min + max) / 2 };
}
