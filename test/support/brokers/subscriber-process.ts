/** The subscriber itself: a process of its own, told what to do by messages of its parent (`subscriber.ts`). */
import { connect, type Socket } from 'node:net';
import { ack_ranges_max } from '../../../src/contract/tasks.ts';
import { downTopic } from '../../../src/contract/topics.ts';
import { connectPacket, packetReader, packetTypes, pubackPacket, readPublish } from './raw-mqtt.ts';
import { retainedPublishPacket, subscribePacket } from './raw-mqtt.ts';
import type { Answer, Question, SubscriberOptions } from './subscriber.ts';
import { monotonic_us, Witness } from '../witness.ts';

const reconnect_ms = 50;
const cloud_tick_ms = 100;

const options = JSON.parse(process.argv[2] ?? '{}') as SubscriberOptions;
let witness = new Witness();
let socket: Socket | undefined;

function send(answer: Answer): void {
  process.send?.(answer);
}

function open(): void {
  const { target, client_id, clean, username, password, filters } = options;
  const link = 'socket' in target ? connect(target.socket) : connect({ ...target, noDelay: true });
  link.on('connect', () => link.write(connectPacket({ client_id, clean, username, password })));
  link.on('error', () => undefined);
  link.on('close', () => {
    socket = undefined;
    setTimeout(open, reconnect_ms);
  });
  const read = packetReader((packet) => {
    if (packet.type === packetTypes.connack) link.write(subscribePacket(1, filters));
    if (packet.type === packetTypes.suback) {
      socket = link;
      send({ kind: 'subscribed' });
    }
    if (packet.type !== packetTypes.publish) return;
    const { topic, packet_id, payload } = readPublish(packet);
    witness.take(topic, payload, monotonic_us());
    if (packet_id !== undefined) acknowledgements.push(pubackPacket(packet_id));
  });
  const acknowledgements: Buffer[] = [];
  link.on('data', (data) => {
    read(data);
    if (acknowledgements.length > 0) link.write(Buffer.concat(acknowledgements.splice(0)));
  });
}

/** Plays the cloud: tells the kit which numbers are stored. A number that comes again is acknowledged again. */
function acknowledgeStored(kit_id: string): void {
  if (!socket) return;
  for (const [epoch, ranges] of Object.entries(witness.news())) {
    const body = JSON.stringify({ epoch: Number(epoch), ranges: ranges.slice(0, ack_ranges_max) });
    socket.write(retainedPublishPacket(1, downTopic(kit_id, { kind: 'ack' }), body));
  }
}

process.on('message', (question: Question) => {
  switch (question.kind) {
    case 'report':
      send({ kind: 'report', sighting: witness.report() });
      return;
    case 'ranges':
      send({ kind: 'ranges', ranges: witness.ranges() });
      return;
    case 'reset':
      witness = new Witness();
      send({ kind: 'done' });
      return;
  }
});
process.on('disconnect', () => process.exit(0));
const { cloud_of } = options;
if (cloud_of !== undefined) setInterval(() => acknowledgeStored(cloud_of), cloud_tick_ms);
open();
