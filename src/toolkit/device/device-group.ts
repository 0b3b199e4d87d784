/**
 * Serves the devices of one driver concurrently, each independently: the loss of one does not affect the others, and another
 * list of devices starts and ends only the devices that differ.
 */
import { isDeepStrictEqual } from 'node:util';
import type { FeedSet } from '../../contract/feeds.ts';
import type { AssetSink, DriverHost } from '../driver/driver.ts';
import type { SessionState } from './device-session.ts';
import { texts } from './texts.ts';

/** A device as the configuration has it; names are unique. */
interface NamedDevice {
  readonly name: string;
}

export interface MemberSession<F extends FeedSet> {
  /** The host of the driver, whose signal aborts when this device must not be served any more. */
  readonly host: DriverHost<F>;
  /** Receives each state of the member's device session. */
  readonly onState: (state: SessionState) => void;
}

export interface DeviceGroupParts<D extends NamedDevice, F extends FeedSet> {
  readonly host: DriverHost<F>;
  /** Resolves when the signal of its host has aborted. */
  readonly serve: (device: D, session: MemberSession<F>) => Promise<void>;
  readonly onState?: (device: D, state: SessionState) => void;
  /** The device is not served any more; it may be served again with other options. */
  readonly onEnd?: (device: D) => void;
}

interface Member<D, F extends FeedSet> {
  readonly device: D;
  readonly end: AbortController;
  /** Never rejects. */
  done: Promise<void>;
  isRejected: boolean;
  /** By asset_key. */
  readonly sinks: Map<string, AssetSink<F>>;
}

export class DeviceGroup<D extends NamedDevice, F extends FeedSet> {
  readonly #parts: DeviceGroupParts<D, F>;
  readonly #members = new Map<string, Member<D, F>>();
  /** Devices that end: their successors start afterwards, since both use the same device and files. */
  #leaving: Promise<void> | undefined;
  readonly #over = new AbortController();
  readonly #ended: AbortSignal;
  #failure: { readonly error: unknown } | undefined;

  constructor(parts: DeviceGroupParts<D, F>) {
    this.#parts = parts;
    this.#ended = AbortSignal.any([parts.host.signal, this.#over.signal]);
  }

  get isOver(): boolean {
    return this.#ended.aborted;
  }

  /**
   * Serves these devices from now on. A device with the same options continues, unless it rejects the connector: then it is
   * tried again at once, and its name is returned. The assets of a device that is not listed any more are removed.
   */
  change(devices: readonly D[]): readonly string[] {
    const next = new Map(devices.map((device) => [device.name, device]));
    const leaving = [...this.#members.values()].filter(
      ({ device, isRejected }) => isRejected || !isDeepStrictEqual(next.get(device.name), device),
    );
    for (const member of leaving) {
      this.#members.delete(member.device.name);
      member.end.abort();
    }
    const left = leaving.map(async (member) => this.#leave(member, next.has(member.device.name)));
    if (left.length > 0) {
      const before = this.#leaving;
      this.#leaving = Promise.all([before, ...left]).then(() => undefined);
    }
    for (const device of devices) if (!this.#members.has(device.name)) this.#start(device);
    return leaving
      .filter(({ device }) => isDeepStrictEqual(next.get(device.name), device))
      .map(({ device }) => device.name);
  }

  /** Ends every device. */
  end(): void {
    this.#over.abort();
  }

  /** Resolves when the driver's signal has aborted, or `end` was called, and no device is served any more. */
  async ended(): Promise<void> {
    if (!this.#ended.aborted) {
      await new Promise((resolve) => {
        this.#ended.addEventListener('abort', resolve, { once: true });
      });
    }
    await this.#leaving;
    await Promise.all(Array.from(this.#members.values(), async ({ done }) => done));
    if (this.#failure) throw this.#failure.error;
  }

  #start(device: D): void {
    const { host, serve, onState } = this.#parts;
    const end = new AbortController();
    const signal = AbortSignal.any([this.#ended, end.signal]);
    const sinks = new Map<string, AssetSink<F>>();
    const announce: DriverHost<F>['announce'] = (about, commands) => {
      const sink = host.announce(about, commands);
      sinks.set(about.asset_key, sink);
      return sink;
    };
    const member: Member<D, F> = { device, end, done: Promise.resolve(), isRejected: false, sinks };
    const session: MemberSession<F> = {
      host: { ...host, signal, announce },
      onState(state) {
        if (signal.aborted) return;
        member.isRejected = state.state === 'rejected';
        onState?.(device, state);
      },
    };
    const before = this.#leaving;
    const run = async (): Promise<void> => {
      if (before) await before;
      if (!signal.aborted) await serve(device, session);
    };
    this.#members.set(device.name, member);
    member.done = run().catch((error: unknown) => {
      this.#failure ??= { error };
      this.#over.abort();
    });
  }

  async #leave({ device, done, sinks }: Member<D, F>, isListed: boolean): Promise<void> {
    await done;
    for (const sink of sinks.values()) {
      if (isListed) sink.setOnline(false, texts.device_changed);
      else sink.remove();
    }
    this.#parts.onEnd?.(device);
  }
}
