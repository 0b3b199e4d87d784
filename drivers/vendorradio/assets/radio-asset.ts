/** The asset of one radio: announces it, publishes its feeds at each poll, and reports when it is offline. */
import type { vendorradioFeeds } from '../../../src/contract/feeds.ts';
import type { AssetSink, DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { fails, notOffered, works } from '../../../src/toolkit/driver/health.ts';
import {
  type Context,
  gpsMessage,
  linkMessage,
  meshMessage,
  offlineMessage,
  primaryOf,
  radioMessage,
  statusMessage,
} from './feeds.ts';
import type { Limits } from '../limits.ts';
import type { RadioOptions, VendorradioOptions } from '../options.ts';
import { Peers } from './peers.ts';
import { assetKeyOf, type Identity, type Reading } from '../reading.ts';
import type { Registry } from '../registry.ts';
import type { Known } from '../source.ts';
import { texts } from '../texts.ts';

type Host = DriverHost<typeof vendorradioFeeds>;

export interface RadioAssetParts {
  readonly host: Host;
  readonly radio: RadioOptions;
  readonly options: VendorradioOptions;
  readonly limits: Limits;
  readonly registry: Registry;
}

interface Announced {
  readonly identity: Identity;
  readonly key: string;
  readonly sink: AssetSink<typeof vendorradioFeeds>;
}

export class RadioAsset {
  readonly #parts: RadioAssetParts;
  readonly #peers: Peers | undefined;
  #announced: Announced | undefined;
  #before: Reading | undefined;
  #isOnline = false;
  #status_told_ms = -Infinity;
  #status_source: string | null = null;

  constructor(parts: RadioAssetParts) {
    const { host, radio, options, limits, registry } = parts;
    this.#parts = parts;
    const heartbeat_ms = options.heartbeat_s * 1_000;
    const isConfigured = (mac: string): boolean => registry.has(mac);
    const peers_parts = { host, radio: radio.name, limits, isConfigured, heartbeat_ms };
    this.#peers = options.peers === 'assets' ? new Peers(peers_parts) : undefined;
  }

  announce({ identity, commands }: Known): void {
    const { host, radio } = this.#parts;
    const key = assetKeyOf(identity.mac);
    if (this.#announced && this.#announced.key !== key) {
      this.#sayOffline(texts.another_radio);
      this.#peers?.forget();
    }
    const description = {
      asset_key: key,
      name: radio.name,
      type: 'radio',
      protocol: 'vendorradio',
      vendor: identity.vendor,
      model: identity.model,
      firmware: identity.firmware,
      configured: true,
      health: { commands: notOffered() },
    } as const;
    this.#announced = { identity, key, sink: host.announce(description, commands) };
    this.#before = undefined;
    this.#status_told_ms = -Infinity;
  }

  see(reading: Reading): void {
    if (!this.#announced) return;
    const { identity, key, sink } = this.#announced;
    const { registry } = this.#parts;
    registry.report(identity.mac, reading.at_mono_ms, reading.stations);
    const context = this.#context(identity, reading);
    if (!this.#isOnline) sink.setOnline(true);
    sink.setHealth('state', reading.gap === undefined ? works : fails(reading.gap));
    sink.publish('radio', radioMessage(context, primaryOf(context)));
    sink.publish('link', linkMessage(context));
    const mesh = meshMessage(context);
    if (mesh) sink.publish('mesh', mesh);
    const gps = gpsMessage(reading);
    if (gps) {
      sink.publish('gps', gps);
      sink.setPosition({ lat: gps.lat, lon: gps.lon });
    }
    this.#tellStatus(context, sink);
    this.#peers?.see(context, key);
    this.#isOnline = true;
    this.#before = reading;
  }

  lose(reason: string): void {
    this.#before = undefined;
    if (this.#isOnline) this.#sayOffline(reason);
  }

  #sayOffline(reason: string): void {
    const timestamp = new Date().toISOString();
    this.#peers?.lose(texts.its_radio(reason), timestamp);
    if (!this.#announced || !this.#isOnline) return;
    const { identity, sink } = this.#announced;
    sink.publish('status', offlineMessage(identity, timestamp));
    sink.setOnline(false, reason);
    this.#isOnline = false;
  }

  /** An event for the cloud, kept until acknowledged: at changes and as heartbeat, not at each poll. */
  #tellStatus(context: Context, sink: Announced['sink']): void {
    const now_ms = performance.now();
    const { source } = context.reading;
    const isDue = now_ms - this.#status_told_ms >= this.#parts.options.heartbeat_s * 1_000;
    if (!isDue && this.#isOnline && source === this.#status_source) return;
    this.#status_told_ms = now_ms;
    this.#status_source = source;
    sink.publish('status', statusMessage(context));
  }

  #context(identity: Identity, reading: Reading): Context {
    const { radio, options, limits, registry } = this.#parts;
    return {
      identity,
      reading,
      before: this.#before,
      primary_peer: radio.primary_peer,
      peer_lost_ms: limits.peer_lost_ms,
      neighbours_max: limits.neighbours_max,
      book: {
        nameOf: (mac) => options.names.get(mac) ?? registry.nameOf(mac),
        assetOf: (mac) => registry.assetKey(mac),
        remoteRssiOf: (mac) => registry.rssiAt(mac, identity.mac, limits.report_fresh_ms),
      },
      timestamp: new Date().toISOString(),
    };
  }
}
