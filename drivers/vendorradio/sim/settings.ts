/** uci of a simulated radio: settings staged by session, and one change at a time that rolls back unless it is confirmed. */
import { z } from 'zod';
import type { Args, SimResult } from './wire.ts';

type Settings = Readonly<Record<string, string>>;

const values = z.record(z.string(), z.string()).catch({});

export class SimSettings {
  /** What is written. */
  saved: Settings = { channel: '36', htmode: 'HT20', txpower: '20' };
  /** What the Wi-Fi works with. */
  active: Settings = { ...this.saved };
  /** Whether a change has any effect on the Wi-Fi. */
  isObedient = true;
  /** By session: what is staged there belongs to it alone; null is deleted. */
  readonly #staged = new Map<string, Readonly<Record<string, string | null>>>();
  #pending: { readonly old: Settings; readonly timer: NodeJS.Timeout } | undefined;

  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Ends the wait for a confirmation, with the power of the radio. */
  stop(): void {
    clearTimeout(this.#pending?.timer);
  }

  call(sid: string, method: string, args: Args): SimResult {
    const staged = this.#staged.get(sid) ?? {};
    switch (method) {
      case 'get':
        return [0, { values: this.#sections() }];
      case 'set':
        if (args['section'] !== 'radio0') return [4];
        this.#staged.set(sid, { ...staged, ...values.parse(args['values']) });
        return [0];
      case 'delete':
        this.#staged.set(sid, { ...staged, [String(args['option'])]: null });
        return [0];
      case 'revert':
        this.#staged.delete(sid);
        return [0];
      case 'apply':
        return this.#apply(sid, Number(args['timeout']));
      case 'confirm':
        return this.#confirm();
      case 'rollback':
        return this.#rollback();
      default:
        return [3];
    }
  }

  #sections() {
    const radio0 = { '.type': 'wifi-device', '.name': 'radio0', ...this.saved };
    const mesh0 = { '.type': 'wifi-iface', device: 'radio0', ifname: 'wlan0', key: 'never-to-be-told' };
    return { radio0, mesh0 };
  }

  #apply(sid: string, timeout_s: number): SimResult {
    if (this.#pending) return [6];
    const old = this.saved;
    const wanted: Readonly<Record<string, string | null>> = { ...old, ...this.#staged.get(sid) };
    this.saved = Object.fromEntries(
      Object.entries(wanted).flatMap(([option, value]) => (value === null ? [] : [[option, value]])),
    );
    this.#staged.delete(sid);
    if (this.isObedient) this.active = this.saved;
    this.#pending = { old, timer: setTimeout(() => this.#rollback(), timeout_s * 1_000) };
    return [0];
  }

  #confirm(): SimResult {
    if (!this.#pending) return [5];
    clearTimeout(this.#pending.timer);
    this.#pending = undefined;
    return [0];
  }

  #rollback(): SimResult {
    if (!this.#pending) return [5];
    clearTimeout(this.#pending.timer);
    this.saved = this.#pending.old;
    this.active = this.saved;
    this.#pending = undefined;
    return [0];
  }
}
