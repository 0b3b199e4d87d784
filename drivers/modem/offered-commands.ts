/** Offers the commands that the options allow, for the modems that are listed now. */
import type { Bus } from '../../src/device/dbus/bus.ts';
import type { noFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/driver/driver.ts';
import type { Modem } from './dbus/properties.ts';
import type { ModemOptions } from './options.ts';
import { type ModemList, resetCommands } from './reset.ts';

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
