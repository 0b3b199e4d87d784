/** Blinks an LED of a radio by its kernel trigger, and restores the earlier trigger. Nothing is executed on the radio. */
import { CommandRefused } from '../../../src/platform/errors.ts';
import { fileText } from '../ubus/iwinfo.ts';
import type { Ubus } from '../ubus/ubus.ts';
import { answerWords } from '../ubus/ubus-wire.ts';
import { texts } from '../texts.ts';

interface LedParts {
  readonly ubus: Ubus;
  readonly name: string | undefined;
}

export class Led {
  readonly #parts: LedParts;
  /** Trigger of the LED before the blinking. */
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

  /** Resolves once the kernel reports that it blinks. */
  async blink(signal: AbortSignal): Promise<void> {
    const now = await this.#trigger();
    if (now === undefined) throw new CommandRefused(texts.no_led(this.#parts.name ?? ''));
    this.#usual ??= now;
    await this.#set('timer', signal);
    if ((await this.#trigger()) !== 'timer') {
      throw new CommandRefused(texts.led_still);
    }
  }

  /** Does nothing when the LED does not blink. */
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
    if (answer.kind !== 'ok') throw new CommandRefused(texts.led_rejected(answerWords(answer)));
  }
}
