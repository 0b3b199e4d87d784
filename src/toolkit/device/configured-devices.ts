/**
 * Serves the devices that the options of a driver list, each independently: their identities, their reports, and another list with a
 * reload. What every driver of many devices has in common.
 */
import { isDeepStrictEqual } from 'node:util';
import type { FeedSet } from '../../contract/feeds.ts';
import type { AssetSink, DeviceReport, DriverHost, OnOptions } from '../driver/driver.ts';
import { isHostShared } from '../driver/host-option.ts';
import { type BoundEntry, IdentityBindings } from '../driver/identity-bindings.ts';
import { replaceFile } from '../../platform/replace-file.ts';
import { aborted, within } from '../../platform/time.ts';
import { DeviceReports } from './device-reports.ts';
import type { SessionState } from './device-session.ts';
import { isOwnHost } from './own-host.ts';
import { readStateText } from './state-file.ts';
import { DeviceRejected } from '../../platform/errors.ts';
import { texts } from './texts.ts';

type Facts = Parameters<DriverHost<FeedSet>['reportStatus']>[0];

/** A device as the configuration has it; names are unique. */
interface ListedDevice {
  readonly name: string;
  readonly host: string;
  readonly identity?: string | undefined;
}

/** The device of one entry, while it is served. */
export interface ServedEntry<D, F extends FeedSet> {
  readonly device: D;
  /** The host of the driver, whose signal aborts when this device must not be served any more. */
  readonly host: DriverHost<F>;
  /** What the identity of the device is bound to. */
  readonly entry: BoundEntry;
  readonly bindings: IdentityBindings;
  /** Other devices are configured at the host of this one, which is not the gateway. */
  readonly is_host_shared: boolean;
  /** Receives each state of the session with the device. */
  readonly onState: (state: SessionState) => void;
  /** Shows a text beside the name of the device in the status of the driver. */
  readonly showStatus: (status: string) => void;
}

export interface ConfiguredDevices<D extends ListedDevice, F extends FeedSet, O> {
  readonly host: DriverHost<F>;
  readonly options: O;
  readonly onOptions: OnOptions<O>;
  readonly devicesOf: (options: O) => readonly D[];
  readonly portOf: (device: NoInfer<D>) => number;
  /** See `DeviceReport`. */
  readonly weaknessOf?: (device: D) => string | undefined;
  /** Resolves when the signal of its host has aborted. */
  readonly serve: (served: ServedEntry<D, F>) => Promise<void>;
  /** The device is not served any more; it may be served again with other options. */
  readonly onEnd?: (device: D) => void;
  /** Facts of the driver in place of the statuses of its devices. */
  readonly factsOf?: (reports: readonly DeviceReport[]) => Facts;
  /** Runs beside the devices until the signal of the host aborts; `report` shows the facts again. */
  readonly beside?: (devices: () => readonly D[], report: () => void) => Promise<void>;
  /** The driver goes on while every device rejects the connector. */
  readonly staysWhenRejected?: boolean;
  /** For devices that must be stopped before the driver ends; no limit when left out. */
  readonly end_ms?: number;
}

/**
 * Runs until the host's signal aborts. Rejects with `DeviceRejected` when every device rejects the connector at the same time:
 * then the driver as a whole is shown as rejected; also when a device cannot be served for a reason of this machine, such as its disk.
 */
export async function serveConfiguredDevices<D extends ListedDevice, F extends FeedSet, O>(
  parts: ConfiguredDevices<D, F, O>,
): Promise<void> {
  const { host, options, onOptions, devicesOf, beside, end_ms } = parts;
  const file = host.stateFile('identities.json');
  const bindings = new IdentityBindings({
    entries: devicesOf(options).map((device) => entryOf(device, parts.portOf(device))),
    saved: await readStateText(file),
    save: async (text) => replaceFile(file, text),
    log: host.log,
  });
  const group = new DeviceGroup(parts, bindings);
  group.change(options);
  onOptions((next) => group.change(next));
  try {
    const all = Promise.all([
      group.ended(),
      beside?.(
        () => group.devices,
        () => group.report(),
      ),
    ]);
    if (end_ms === undefined) await all;
    else {
      await Promise.race([aborted(host.signal), all]);
      await within(end_ms, all);
    }
  } finally {
    await bindings.saved();
  }
}

function entryOf({ name, host, identity }: ListedDevice, port: number): BoundEntry {
  return { name, place: [`${host}:${port}`, identity ?? []].flat().join(' ') };
}

interface Member<D, F extends FeedSet> {
  readonly device: D;
  readonly end: AbortController;
  /** Never rejects. */
  readonly done: Promise<void>;
  /** By asset_key. */
  readonly sinks: ReadonlyMap<string, AssetSink<F>>;
}

type Rejection = Extract<SessionState, { readonly state: 'rejected' }>;

/** The loss of one device does not affect the others, and another list starts and ends only the devices that differ. */
class DeviceGroup<D extends ListedDevice, F extends FeedSet, O> {
  readonly #parts: ConfiguredDevices<D, F, O>;
  readonly #bindings: IdentityBindings;
  readonly #members = new Map<string, Member<D, F>>();
  /** All that reject the connector now. */
  readonly #rejections = new Map<string, Rejection>();
  readonly #statuses = new Map<string, string>();
  readonly #reports = new DeviceReports(() => this.report());
  /** Devices that end: their successors start afterwards, since both use the same device and files. */
  #leaving: Promise<void> | undefined;
  readonly #over = new AbortController();
  readonly #ended: AbortSignal;
  #failure: { readonly error: unknown } | undefined;
  /** As configured now. */
  devices: readonly D[] = [];

  constructor(parts: ConfiguredDevices<D, F, O>, bindings: IdentityBindings) {
    this.#parts = parts;
    this.#bindings = bindings;
    this.#ended = AbortSignal.any([parts.host.signal, this.#over.signal]);
  }

  report(): void {
    const { host, factsOf } = this.#parts;
    const reports = this.#reports.all;
    host.reportStatus(factsOf ? factsOf(reports) : Object.fromEntries(this.#statuses), reports);
  }

  /**
   * Serves the devices of these options from now on. A device with the same options continues, unless it rejects the connector: then
   * it is tried again at once, and its name is returned. The assets of a device that is not listed any more are removed. Undefined
   * once the driver ends.
   */
  change(options: O): readonly string[] | undefined {
    if (this.#ended.aborted) return undefined;
    this.devices = this.#parts.devicesOf(options);
    this.#bindings.keep(this.devices.map((device) => this.#entryOf(device)));
    const next = new Map(this.devices.map((device) => [device.name, device]));
    const isSame = ({ device }: Member<D, F>): boolean => isDeepStrictEqual(next.get(device.name), device);
    const leaving = [...this.#members.values()].filter(
      (member) => this.#rejections.has(member.device.name) || !isSame(member),
    );
    for (const { device, end } of leaving) {
      this.#members.delete(device.name);
      this.#rejections.delete(device.name);
      end.abort();
    }
    const left = leaving.map(async (member) => this.#leave(member, next.has(member.device.name)));
    if (left.length > 0) this.#leaving = Promise.all([this.#leaving, ...left]).then(() => undefined);
    for (const device of this.devices) if (!this.#members.has(device.name)) this.#start(device);
    this.#endIfRejected();
    return leaving.filter(isSame).map(({ device }) => device.name);
  }

  /** Resolves when the host's signal has aborted and no device is served any more. */
  async ended(): Promise<void> {
    await aborted(this.#ended);
    await this.#leaving;
    await Promise.all(Array.from(this.#members.values(), async ({ done }) => done));
    if (this.#failure) throw this.#failure.error;
    if (this.#parts.host.signal.aborted) return;
    const sentences = Array.from(this.#rejections, ([name, { reason }]) => `${name} ${reason}`);
    throw new DeviceRejected(sentences.join('; '), { may_pass: this.#rejections.values().some(mayPass) });
  }

  #entryOf(device: D): BoundEntry {
    return entryOf(device, this.#parts.portOf(device));
  }

  #endIfRejected(): void {
    const count = this.#members.size;
    const isOver = this.#parts.staysWhenRejected !== true && count > 0 && this.#rejections.size === count;
    if (isOver) this.#over.abort();
  }

  #start(device: D): void {
    const { name } = device;
    const end = new AbortController();
    const signal = AbortSignal.any([this.#ended, end.signal]);
    const sinks = new Map<string, AssetSink<F>>();
    const before = this.#leaving;
    const run = async (): Promise<void> => {
      if (before) await before;
      if (!signal.aborted) await this.#parts.serve(this.#served(device, signal, sinks));
    };
    const done = run().catch((error: unknown) => {
      this.#failure ??= { error };
      this.#over.abort();
    });
    this.#members.set(name, { device, end, done, sinks });
  }

  #served(device: D, signal: AbortSignal, sinks: Map<string, AssetSink<F>>): ServedEntry<D, F> {
    const { host, weaknessOf } = this.#parts;
    const { name } = device;
    const bindings = this.#bindings;
    const entry = this.#entryOf(device);
    const reported = {
      name,
      tried: `${device.host}:${this.#parts.portOf(device)}`,
      asset_key: () => bindings.keyOf(entry),
      weakness: weaknessOf?.(device),
    };
    const announce: DriverHost<F>['announce'] = (about, commands) => {
      const sink = host.announce(about, commands);
      sinks.set(about.asset_key, sink);
      return sink;
    };
    return {
      device,
      host: { ...host, signal, announce },
      entry,
      bindings,
      is_host_shared: isHostShared(device, this.devices) && !isOwnHost(device.host),
      onState: (state) => {
        if (signal.aborted) return;
        this.#reports.take(reported, state);
        if (state.state === 'rejected') this.#rejections.set(name, state);
        else this.#rejections.delete(name);
        this.#endIfRejected();
      },
      showStatus: (status) => {
        if (signal.aborted || this.#statuses.get(name) === status) return;
        this.#statuses.set(name, status);
        this.report();
      },
    };
  }

  async #leave({ device, done, sinks }: Member<D, F>, isListed: boolean): Promise<void> {
    await done;
    for (const sink of sinks.values()) {
      if (isListed) sink.setOnline(false, texts.device_changed);
      else sink.remove();
    }
    this.#parts.onEnd?.(device);
    this.#statuses.delete(device.name);
    this.#reports.forget(device.name);
  }
}

function mayPass({ error }: Rejection): boolean {
  return error instanceof DeviceRejected && error.may_pass;
}
