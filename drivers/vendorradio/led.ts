/** Lets an LED of a radio blink, by its kernel trigger, and puts back what it did before. Nothing is executed on the radio. */
import { CommandRefused } from '../../src/errors.ts';
import { fileText } from './iwinfo.ts';
import type { Ubus } from './ubus.ts';
import { answerWords } from './ubus-wire.ts';

interface LedParts {
  readonly ubus: Ubus;
  readonly name: string | undefined;
}

export class Led {
  readonly #parts: LedParts;
  /** What the LED showed before it was told to blink. */
  #usual: string | undefined;

  constructor(parts: LedParts) {
    this.#parts = parts;
  }

  get isOffered(): boolean {
    const { ubus, name } = this.#parts;
    const path = this.#path;
    return (
      name !== undefined && ubus.grants?.mayFile(path, 'read') === true && ubus.grants.mayFile(path, 'write')
    );
  }

  /** Resolves once the kernel says that it blinks. */
  async blink(signal: AbortSignal): Promise<void> {
    const now = await this.#trigger();
    if (now === undefined)
      throw new CommandRefused(`the radio has no LED ${this.#parts.name ?? ''}; correct identify_led`);
    this.#usual ??= now;
    await this.#set('timer', signal);
    if ((await this.#trigger()) !== 'timer') {
      throw new CommandRefused(
        'the radio took the order, but its LED does not blink; its kernel may lack the timer trigger',
      );
    }
  }

  /** Does nothing when nothing blinks. */
  async restore(): Promise<void> {
    if (this.#usual === undefined) return;
    await this.#set(this.#usual);
    this.#usual = undefined;
  }

  get #path(): string {
    return `/sys/class/leds/${this.#parts.name ?? ''}/trigger`;
  }

  /** The chosen one stands in brackets. */
  async #trigger(): Promise<string | undefined> {
    const call = { object: 'file', method: 'read', args: { path: this.#path } };
    const answer = await this.#parts.ubus.askOne(call);
    return answer.kind === 'ok' ? /\[([\w-]+)\]/u.exec(fileText(answer.body) ?? '')?.[1] : undefined;
  }

  async #set(trigger: string, signal?: AbortSignal): Promise<void> {
    const call = { object: 'file', method: 'write', args: { path: this.#path, data: trigger } };
    const answer = await this.#parts.ubus.askOne(call, signal ? { signal } : {});
    if (answer.kind !== 'ok')
      throw new CommandRefused(`the radio refuses to set its LED: ${answerWords(answer)}`);
  }
}
