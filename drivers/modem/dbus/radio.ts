/** Signal figures and serving cells, which ModemManager reads from the modem only for those who may control it. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import type { Bus, Reply } from '../../../src/toolkit/device/dbus/bus.ts';
import { cellProperties, mm, type Modem } from './properties.ts';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';

/** Cells of one modem that are looked at. */
const cells_max = 32;
/** A modem that did not answer is left alone for so long. */
const stuck_pause_ms = 300_000;

/** Asks for figures at a pace, and for cells with each reading. A refusal is logged once for each modem. */
export class Radio {
  readonly #interval_s: number;
  readonly #log: DriverLog;
  /** Modems that refused; a modem that is plugged in again is another object. */
  readonly #refused = new Set<string>();
  /** Modems that did not answer, with the time of the next question. */
  readonly #stuck = new Map<string, number>();

  /** `interval_s` 0: nothing is asked. */
  constructor(interval_s: number, log: DriverLog) {
    this.#interval_s = interval_s;
    this.#log = log;
  }

  /** The modems with the cells that they reported. */
  async read(bus: Bus, modems: readonly Modem[]): Promise<readonly Modem[]> {
    if (this.#interval_s === 0) return modems;
    const present = new Set(modems.map(({ path }) => path));
    for (const path of this.#refused) if (!present.has(path)) this.#refused.delete(path);
    for (const path of this.#stuck.keys()) if (!present.has(path)) this.#stuck.delete(path);
    // In parallel: a modem that does not answer must not delay the others.
    return Promise.all(modems.map(async (modem) => this.#oneOrNone(bus, modem)));
  }

  async #oneOrNone(bus: Bus, modem: Modem): Promise<Modem> {
    const { path } = modem;
    if (performance.now() < (this.#stuck.get(path) ?? 0)) return modem;
    try {
      const read = await this.#one(bus, modem);
      this.#stuck.delete(path);
      return read;
    } catch (error) {
      if (bus.lost.aborted || !(error instanceof DeviceUnreachable)) throw error;
      if (!this.#stuck.has(path)) this.#warn(modem, messageOf(error), texts.reset_modem, texts.modem_stuck);
      this.#stuck.set(path, performance.now() + stuck_pause_ms);
      return modem;
    }
  }

  async #one(bus: Bus, modem: Modem): Promise<Modem> {
    const { path, signal } = modem;
    if (this.#refused.has(path) || modem.modem.State === undefined || modem.modem.State < 8) return modem;
    const about = { destination: mm, path };
    if (signal.Rate !== this.#interval_s) {
      const setup = { interface: `${mm}.Modem.Signal`, member: 'Setup', signature: 'u' };
      const reply = await bus.call({ ...about, ...setup, body: [this.#interval_s] });
      if (!reply.ok) return this.#refuse(modem, reply);
    }
    const reply = await bus.call({ ...about, interface: `${mm}.Modem`, member: 'GetCellInfo' });
    if (!reply.ok && refusalOf(reply) === 'silent') throw new DeviceUnreachable(reply.reason);
    // Older releases and some modems list no cells; the figures do not depend on it.
    const cells = reply.ok ? cellProperties.safeParse(reply.value).data : undefined;
    return cells ? { ...modem, cells: cells.slice(0, cells_max) } : modem;
  }

  #refuse(modem: Modem, reply: Extract<Reply, { ok: false }>): Modem {
    const { reason } = reply;
    const refusal = refusalOf(reply);
    if (refusal === 'silent') throw new DeviceUnreachable(reason);
    if (refusal === 'later') return modem;
    this.#refused.add(modem.path);
    if (refusal === 'forbidden') this.#warn(modem, reason, texts.allow_signal, texts.signal_refused);
    else this.#warn(modem, reason, texts.stop_asking, texts.signal_unsupported);
    return modem;
  }

  #warn({ modem, path }: Modem, reason: string, remedy: string, sentence: string): void {
    this.#log.warn({ modem: modem.Model ?? path, reason, remedy }, sentence);
  }
}

/**
 * `forbidden`: a right is missing; `unsupported`: this modem will never answer it; `silent`: the modem did not answer
 * ModemManager; `later`: anything else, as a state in which the modem cannot answer.
 */
type Refusal = 'forbidden' | 'unsupported' | 'silent' | 'later';

/** ModemManager passes on the errors of libqmi and libmbim, whose names are their own. */
const kinds: readonly (readonly [Refusal, RegExp])[] = [
  ['forbidden', /\.(?:Unauthorized|AccessDenied|NotAuthorized)$/u],
  ['unsupported', /\.(?:Unsupported|NotSupported|UnknownMethod|UnknownInterface)$/u],
  ['silent', /\.Serial\.|\.(?:\w*Timeout|NoReply)$/u],
];

export function refusalOf({ error = '' }: Extract<Reply, { ok: false }>): Refusal {
  return kinds.find(([, names]) => names.test(error))?.[0] ?? 'later';
}
