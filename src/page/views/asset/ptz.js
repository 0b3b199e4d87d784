/**
 * Moves a camera while an arrow is held. One owner, a pointer or a key, holds at a time; `stop` is sent after the answer to
 * the move has settled, also when the move failed, so that it never overtakes it.
 */
import { repeatOf } from '../../world/hold.js';
import { field } from '../../world/json.js';
import { t } from '../../words/words.js';
import { lockReason } from '../command/about.js';
import { html } from '../parts/html.js';
import { Component } from '../../preact.js';

/** @import { CommandDefinition, JsonValue, LiveAsset, View } from '../../types.d.ts' */

/** @typedef {'up' | 'right' | 'down' | 'left'} Direction */
/** @typedef {{ asset: LiveAsset, command: CommandDefinition, view: View }} Props */

/** @type {readonly (readonly [Direction, number])[]} */
const directions = [
  ['up', 0],
  ['right', 90],
  ['down', 180],
  ['left', 270],
];
/** @type {Readonly<Record<string, Direction>>} */
const keys = { ArrowUp: 'up', ArrowRight: 'right', ArrowDown: 'down', ArrowLeft: 'left' };

/** @extends {Component<Props, { held: Direction | null, speed: number | null }>} */
export class PtzPad extends Component {
  /**
   * @override
   * @type {{ held: Direction | null, speed: number | null }}
   */
  state = { held: null, speed: null };
  /** Who holds: `pointer 3`, `key ArrowUp`, or empty. */
  #owner = '';
  #mounted = new AbortController();
  /** Ends the hold that runs. */
  #hold = new AbortController();
  /** @type {Promise<void>} */
  #running = Promise.resolve();

  /** @override */
  componentDidMount() {
    const { signal } = this.#mounted;
    addEventListener('blur', () => this.#release(), { signal });
    document.addEventListener('visibilitychange', () => this.#release(), { signal });
    addEventListener('keydown', (event) => event.key === 'Escape' && this.#release(), { signal });
  }

  /**
   * A lost link ends the hold: the service no longer receives what keeps it alive.
   * @override
   */
  componentDidUpdate() {
    if (this.#isLocked() && this.#owner !== '') this.#release();
  }

  /** @override */
  componentWillUnmount() {
    this.#release();
    this.#mounted.abort();
  }

  #isLocked() {
    return lockReason(this.props.view, this.props.asset) !== undefined;
  }

  /**
   * @param {string} owner
   * @param {Direction} direction
   */
  #press(owner, direction) {
    if (this.#owner !== '' || this.#isLocked()) return;
    this.#owner = owner;
    this.#hold = new AbortController();
    this.setState({ held: direction });
    const before = this.#running;
    this.#running = this.#move(direction, this.#hold.signal, before);
  }

  /**
   * Sends the move, again while it is held, and then the stop.
   * @param {Direction} direction
   * @param {AbortSignal} released
   * @param {Promise<void>} before the hold before this one, with its stop
   */
  async #move(direction, released, before) {
    await before;
    while (!released.aborted) {
      const sent_ms = performance.now();
      await this.#send(direction);
      await wait(sent_ms + repeatOf(this.props.command) - performance.now(), released);
    }
    await this.#send('stop');
  }

  /** @param {string} [owner] left out: the current owner */
  #release(owner = this.#owner) {
    if (owner !== this.#owner || owner === '') return;
    this.#owner = '';
    this.#hold.abort();
    this.setState({ held: null });
  }

  /** @param {Direction | 'stop'} direction */
  async #send(direction) {
    const { asset, command, view } = this.props;
    const speed = this.state.speed ?? speedOf(command)?.initial;
    /** @type {Record<string, JsonValue>} */
    const payload = speed === undefined || direction === 'stop' ? { direction } : { direction, speed };
    await view.act.sendQuietly({ asset, command, payload });
  }

  #stop = () => {
    this.#release();
    const before = this.#running;
    this.#running = before.then(async () => this.#send('stop'));
  };

  /** @param {KeyboardEvent} event */
  #keyDown = (event) => {
    const direction = keys[event.key];
    if (!direction) return;
    event.preventDefault();
    if (!event.repeat) this.#press(`key ${event.key}`, direction);
  };

  /** @param {KeyboardEvent} event */
  #keyUp = (event) => this.#release(`key ${event.key}`);

  /** @param {PointerEvent} event */
  #pointerUp = (event) => this.#release(`pointer ${event.pointerId}`);

  /**
   * @param {Direction} direction
   * @returns {(event: PointerEvent & { currentTarget: Element }) => void}
   */
  #pointerDown(direction) {
    return (event) => {
      event.preventDefault();
      // Leaving the arrow keeps the hold; lifting the finger anywhere ends it.
      event.currentTarget.setPointerCapture(event.pointerId);
      this.#press(`pointer ${event.pointerId}`, direction);
    };
  }

  /** @override */
  render() {
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
    /** @param {Event & { currentTarget: HTMLInputElement }} event */
    const slide = ({ currentTarget }) => this.setState({ speed: Number(currentTarget.value) });
    return html`<label class="speed"
      ><span>${t.camera.speed} <b>${t.camera.speedOf({ now, max: range.max })}</b></span>
      <input type="range" min=${range.min} max=${range.max} step=${range.step} value=${now} onInput=${slide}
    /></label>`;
  }
}

/**
 * @param {CommandDefinition} command
 * @returns {{ readonly min: number, readonly max: number, readonly step: number, readonly initial: number } | undefined}
 */
function speedOf(command) {
  const schema = field(field(command.input_schema, 'properties'), 'speed');
  const number = (/** @type {string} */ key) => {
    const value = field(schema, key);
    return typeof value === 'number' ? value : undefined;
  };
  const min = number('minimum');
  const max = number('maximum');
  if (min === undefined || max === undefined) return undefined;
  const isWhole = field(schema, 'type') === 'integer';
  return { min, max, step: isWhole ? 1 : (max - min) / 20, initial: number('default') ?? (min + max) / 2 };
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 */
async function wait(ms, signal) {
  if (signal.aborted || ms <= 0) return;
  /** @type {PromiseWithResolvers<void>} */
  const { promise, resolve } = Promise.withResolvers();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
}
