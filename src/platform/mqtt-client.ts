/** MQTT.js as the connector, the service and the doctor use it: as a client of one connection, which keeps no messages. */
import { Store } from 'mqtt';

export { MqttClient, type IClientOptions, type IConnackPacket, type Packet } from 'mqtt';

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
