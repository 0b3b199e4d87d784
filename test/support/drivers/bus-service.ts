/** A service on a private message bus, at the level of messages, so that it can answer wrongly too. */
import { createConnection, type Message } from 'dbus-native';

const bus_name = 'org.freedesktop.DBus';
const daemon = { type: 1, destination: bus_name, path: '/org/freedesktop/DBus', interface: bus_name };

export interface BusService {
  /** Sends a reply or a signal; its serial is added. */
  send(message: Message): void;
  stop(): void;
}

/** Connects, takes the name, and hands over the calls that arrive from then on. */
export async function ownName(
  address: string,
  name: string,
  onCall: (call: Message) => void,
): Promise<BusService> {
  const connection = createConnection({ busAddress: address, authMethods: ['EXTERNAL'] });
  connection.on('error', () => undefined);
  let serial = 1;
  const send = (message: Message): void => void connection.message({ ...message, serial: serial++ });
  await new Promise<void>((resolve) => {
    connection.on('message', (message) => {
      if (message.type === 1) onCall(message);
      // The second serial is the request for the name.
      if (message.type === 2 && message.replySerial === 2) resolve();
    });
    send({ ...daemon, member: 'Hello' });
    send({ ...daemon, member: 'RequestName', signature: 'su', body: [name, 4] });
  });
  return { send, stop: () => void connection.end() };
}
