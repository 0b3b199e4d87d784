/**
 * Serves the devices that the options of a driver list: their identities, their reports, and another list with a reload. What every
 * driver of many devices has in common.
 */
import type { FeedSet } from '../../contract/feeds.ts';
import type { DeviceReport, DriverHost, OnOptions } from '../driver/driver.ts';
import { type BoundEntry, IdentityBindings } from '../driver/identity-bindings.ts';
import { replaceFile } from '../../platform/replace-file.ts';
import { aborted, within } from '../../platform/time.ts';
import { DeviceReports, type ReportedDevice } from './device-reports.ts';
import type { SessionState } from './device-session.ts';
import { readStateText } from './state-file.ts';
import { DeviceRejected } from '../../platform/errors.ts';
import { DeviceGroup, type DeviceGroupParts } from './device-group.ts';

type Facts = Parameters<DriverHost<FeedSet>['reportStatus']>[0];

/** The device of one entry, while it is served. */
export interface ServedEntry<D, F extends FeedSet> {
  readonly device: D;
  /** The host of the driver, whose signal aborts when this device must not be served any more. */
  readonly host: DriverHost<F>;
  readonly entry: BoundEntry;
  readonly bindings: IdentityBindings;
  /** All devices as they are configured now. */
  readonly devices: readonly D[];
  /** Receives each state of the session with the device. */
  readonly onState: (state: SessionState) => void;
  /** Shows a text beside the name of the device in the status of the driver. */
  readonly showStatus: (status: string) => void;
}

export interface ConfiguredDevices<D extends { readonly name: string }, F extends FeedSet, O> {
  readonly host: DriverHost<F>;
  readonly options: O;
  readonly onOptions: OnOptions<O>;
  readonly devicesOf: (options: O) => readonly D[];
  /** What the identity of a device is bound to. */
  readonly entryOf: (device: D) => BoundEntry;
  readonly about: (device: D) => Pick<ReportedDevice, 'tried' | 'weakness'>;
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

/** Runs as `serveDevices` does; rejects also when a device cannot be served for a reason of this machine, such as its disk. */
export async function serveConfiguredDevices<D extends { readonly name: string }, F extends FeedSet, O>(
  parts: ConfiguredDevices<D, F, O>,
): Promise<void> {
  const { host, devicesOf, entryOf, factsOf, end_ms } = parts;
  const statuses = new Map<string, string>();
  const report = (): void =>
    host.reportStatus(factsOf ? factsOf(reports.all) : Object.fromEntries(statuses), reports.all);
  const reports = new DeviceReports(report);
  let devices = devicesOf(parts.options);
  const bindings = await openIdentities(host, devices.map(entryOf));
  const serving = serveDevices<D, F>({
    host,
    devices,
    staysWhenRejected: parts.staysWhenRejected,
    bindings,
    onStart: (change) =>
      parts.onOptions((next) => {
        devices = devicesOf(next);
        bindings.keep(devices.map(entryOf));
        return change(devices);
      }),
    onEnd(device) {
      parts.onEnd?.(device);
      statuses.delete(device.name);
      reports.forget(device.name);
    },
    async serve(device, session) {
      const { name } = device;
      const entry = entryOf(device);
      const reported = { ...parts.about(device), name, asset_key: () => bindings.keyOf(entry) };
      await parts.serve({
        device,
        host: session.host,
        entry,
        bindings,
        devices,
        onState: reports.follow(reported, session),
        showStatus(status) {
          if (session.host.signal.aborted || statuses.get(name) === status) return;
          statuses.set(name, status);
          report();
        },
      });
    },
  });
  try {
    const all = Promise.all([serving, parts.beside?.(() => devices, report)]);
    if (end_ms === undefined) await all;
    else {
      await Promise.race([aborted(host.signal), all]);
      await within(end_ms, all);
    }
  } finally {
    await bindings.saved();
  }
}

/** The identities of earlier starts; none without a readable file. */
async function openIdentities(
  { stateFile, log }: Pick<DriverHost<FeedSet>, 'stateFile' | 'log'>,
  entries: readonly BoundEntry[],
): Promise<IdentityBindings> {
  const file = stateFile('identities.json');
  const saved = await readStateText(file);
  return new IdentityBindings({ entries, saved, save: async (text) => replaceFile(file, text), log });
}

// Serves the devices of one driver that is rejected as a whole once all of them reject the connector.

interface ServedDevices<D extends { readonly name: string }, F extends FeedSet> extends Omit<
  DeviceGroupParts<D, F>,
  'onState'
> {
  readonly devices: readonly D[];
  /** Identities of the devices: they are on disk when the driver ends. */
  readonly bindings: Pick<IdentityBindings, 'saved'>;
  /** The driver goes on while every device rejects the connector. */
  readonly staysWhenRejected?: boolean | undefined;
  /** Receives a function that takes another list; it returns undefined once the driver ends (see `DeviceGroup.change`). */
  readonly onStart?: (change: (devices: readonly D[]) => readonly string[] | undefined) => void;
}

/**
 * Runs until the host's signal aborts. Rejects with `DeviceRejected` when every device rejects the connector at the same time:
 * then the driver as a whole is shown as rejected.
 */
export async function serveDevices<D extends { readonly name: string }, F extends FeedSet>({
  devices,
  bindings,
  onStart,
  staysWhenRejected = false,
  ...parts
}: ServedDevices<D, F>): Promise<void> {
  const rejections = new Map<string, Rejection>();
  let count = devices.length;
  const endIfRejected = (): void => {
    if (!staysWhenRejected && count > 0 && rejections.size === count) group.end();
  };
  const group = new DeviceGroup({
    ...parts,
    onState({ name }, state) {
      if (state.state === 'rejected') rejections.set(name, state);
      else rejections.delete(name);
      endIfRejected();
    },
  });
  group.change(devices);
  onStart?.((next) => {
    if (group.isOver) return undefined;
    count = next.length;
    const again = group.change(next);
    const names = new Set(next.map(({ name }) => name));
    for (const name of rejections.keys())
      if (!names.has(name) || again.includes(name)) rejections.delete(name);
    endIfRejected();
    return again;
  });
  try {
    await group.ended();
  } finally {
    await bindings.saved();
  }
  if (parts.host.signal.aborted) return;
  const sentences = Array.from(rejections, ([name, { reason }]) => `${name} ${reason}`);
  throw new DeviceRejected(sentences.join('; '), { may_pass: rejections.values().some(mayPass) });
}

type Rejection = Extract<SessionState, { readonly state: 'rejected' }>;

function mayPass({ error }: Rejection): boolean {
  return error instanceof DeviceRejected && error.may_pass;
}
