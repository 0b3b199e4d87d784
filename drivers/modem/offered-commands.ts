/** Offers the commands that the options allow, for the modems that are listed now. */
import { z } from 'zod';
import type { Bus } from '../../src/toolkit/device/dbus/bus.ts';
import type { noFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/toolkit/driver/driver.ts';
import { type Modem, mm } from './dbus/properties.ts';
import type { ModemOptions } from './options.ts';
import type { JsonObject } from '../../src/contract/json.ts';
import { orderOnce } from '../../src/toolkit/device/dbus/order-once.ts';
import { type Command, type CommandContext, defineCommand } from '../../src/toolkit/driver/command.ts';
import { CommandRefused, notSent } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { refusalOf } from './dbus/radio.ts';
import { interfacesOf } from './links.ts';
import { texts } from './texts.ts';

/** By options of the instance: a reset continues while the driver reconnects. */
const lists = new WeakMap<ModemOptions, ModemList>();

/** Offers the commands that are allowed for the modems that are there, again when there are others. */
export class OfferedCommands {
  readonly #options: ModemOptions;
  readonly #host: DriverHost<typeof noFeeds>;
  readonly #list: ModemList;
  #offered = '';

  constructor(options: ModemOptions, host: DriverHost<typeof noFeeds>) {
    this.#options = options;
    this.#host = host;
    this.#list = lists.get(options) ?? { bus: undefined, modems: [] };
    lists.set(options, this.#list);
    host.signal.addEventListener('abort', () => (this.#list.bus = undefined), { once: true });
  }

  update(bus: Bus, modems: readonly Modem[]): void {
    this.#list.bus = bus;
    this.#list.modems = modems;
    if (!this.#options.commands.includes('reset')) return;
    const commands = resetCommands(this.#list, this.#options.interfaces);
    const schemas = JSON.stringify(commands.map(({ input_schema }) => input_schema));
    if (schemas === this.#offered) return;
    this.#offered = schemas;
    this.#host.serveGateway(commands);
  }
}

/** Modems are back after 20 to 60 s; a slow one with a SIM that is asked again takes two minutes. */
const reset_timeout_ms = 180_000;
const look_ms = 250;

/** What ModemManager lists now; outlives a run of the driver, so that a reset also survives its restart. */
interface ModemList {
  /** Undefined while ModemManager is not reached. */
  bus: Bus | undefined;
  modems: readonly Modem[];
}

/** The command for the modems that are listed, by the names of their interfaces; none while there are none. */
function resetCommands(list: ModemList, interfaces: Readonly<Record<string, string>>): Command[] {
  const [first, ...others] = new Set(list.modems.flatMap((modem) => interfacesOf(modem, interfaces)));
  if (first === undefined) return [];
  const input = z.strictObject({ interface: z.enum([first, ...others]).describe(texts.reset_interface) });
  const reset = defineCommand({
    name: 'reset_modem',
    description: texts.reset,
    risk_level: 'high',
    timeout_ms: reset_timeout_ms,
    input,
    handle: async (payload, context) => {
      const modem = list.modems.find((each) => interfacesOf(each, interfaces).includes(payload.interface));
      if (!modem || !list.bus) throw new CommandRefused(notSent(texts.modem_absent(payload.interface)));
      return resetModem({ list, bus: list.bus, modem, name: payload.interface }, context);
    },
  });
  return [reset];
}

interface Resetting {
  readonly list: ModemList;
  readonly bus: Bus;
  readonly modem: Modem;
  readonly name: string;
}

async function resetModem(
  { list, bus, modem, name }: Resetting,
  context: CommandContext,
): Promise<JsonObject> {
  const begin_ms = performance.now();
  const isBack = returnOf(modem, list);
  const call = { destination: mm, path: modem.path, interface: `${mm}.Modem`, member: 'Reset' };
  const reply = await orderOnce(bus, call);
  const refusal = reply.ok ? undefined : refusalOf(reply);
  // A modem that did not answer ModemManager any more may be restarting.
  if (!reply.ok && refusal !== 'silent') {
    const { reason } = reply;
    const sentence = refusal === 'forbidden' ? texts.reset_forbidden(reason) : texts.reset_refused(reason);
    throw new CommandRefused(notSent(sentence));
  }
  context.progress(texts.resetting);
  while (!context.signal.aborted) {
    if (isBack()) {
      return { interface: name, away_s: Math.round((performance.now() - begin_ms) / 1_000) };
    }
    await sleep(look_ms, context.signal);
  }
  throw new CommandRefused(texts.modem_not_back);
}

/**
 * Whether the modem is listed again, looked at now and then: as another object, or as the same once it was gone, since ModemManager counts
 * from 0 when it restarts. Without an IMEI, as for a failed modem, a modem counts that was not listed before.
 */
function returnOf(reset: Modem, list: ModemList): () => boolean {
  const identity = imeiOf(reset);
  const bus = list.bus;
  const others = list.modems.filter(({ path }) => path !== reset.path);
  const isOther = (each: Modem): boolean =>
    identity === undefined
      ? others.some((other) => other.path === each.path || (imeiOf(other) ?? '') === imeiOf(each))
      : imeiOf(each) !== identity;
  let wasGone = false;
  return () => {
    wasGone ||= list.bus !== bus || list.modems.every(({ path }) => path !== reset.path);
    if (list.bus === undefined) return false;
    return list.modems.some((each) => !isOther(each) && (wasGone || each.path !== reset.path));
  };
}

function imeiOf({ modem }: Modem): string | undefined {
  return modem.EquipmentIdentifier;
}
