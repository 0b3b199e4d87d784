/**
 * MQTT.js's client by itself: its other half, for WebSocket, SOCKS proxies and browsers, would lie in memory unused. And a
 * store for it that keeps nothing, since whoever uses it here keeps its messages elsewhere.
 */
import client from 'mqtt/lib/client';
import store from 'mqtt/lib/store';

export type { IClientOptions, IConnackPacket, Packet } from 'mqtt';

export const MqttClient = client.default;
export type MqttClient = InstanceType<typeof MqttClient>;

const Store = store.default;
type Store = InstanceType<typeof Store>;

/** Keeps nothing, so that MQTT.js finds nothing to replay. */
export class NullStore extends Store {
  override put(...[, done]: Parameters<Store['put']>): this {
    done();
    return this;
  }

  override del(...[, done]: Parameters<Store['del']>): this {
    done();
    return this;
  }
}
