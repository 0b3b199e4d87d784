/** Many kits as the broker sees them: a connection for each, and the messages of its assets. Does what its parent asks. */
import { connect, type Socket } from 'node:net';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { assetId } from '../../../src/contract/identity.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { every } from '../../../src/platform/time.ts';
import { samples } from '../../support/contract-samples.ts';
import {
  connectPacket,
  packetReader,
  packetTypes,
  publishPacket,
  retainedPublishPacket,
} from '../../support/brokers/raw-mqtt.ts';
import type { FleetAnswer, FleetOrder } from '../support/fleet-kits.ts';

const assets_of_kit = 5;
const packet_ids = 65_535;
const tick_ms = 20;

interface FleetKit {
  readonly kit_id: string;
  readonly assets: readonly string[];
  readonly socket: Socket;
  seq: number;
}

/** Messages that the broker has not acknowledged. */
let unacknowledged = 0;
let onAcknowledged: (() => void) | undefined;

async function connectKit(kit_id: string, port: number): Promise<FleetKit> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const assets = Array.from({ length: assets_of_kit }, (_, n) => assetId(kit_id, `asset-${n}`));
  const kit: FleetKit = { kit_id, assets, socket, seq: 0 };
  const connected = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    const read = packetReader(({ type }) => {
      if (type === packetTypes.connack) resolve();
      if (type !== packetTypes.puback) return;
      unacknowledged -= 1;
      if (unacknowledged === 0) onAcknowledged?.();
    });
    socket.on('data', read);
  });
  socket.write(connectPacket({ client_id: kit_id, clean: true }));
  await connected;
  return kit;
}

function send(
  kit: FleetKit,
  channel: string,
  data: JsonObject | null | undefined,
  how: typeof publishPacket,
): void {
  kit.seq += 1;
  unacknowledged += 1;
  const text = writeEnvelope({ epoch: 1, seq: kit.seq, time_ms: Date.now() }, JSON.stringify(data));
  kit.socket.write(how(((kit.seq - 1) % packet_ids) + 1, upTopic(kit.kit_id, channel), text));
}

function introduce(kit: FleetKit): void {
  send(kit, channels.state, samples['kitState'], retainedPublishPacket);
  send(kit, channels.telemetry, samples['kitTelemetry'], publishPacket);
  for (const id of kit.assets) {
    send(kit, channels.asset(id), { ...samples['announcement'], id }, retainedPublishPacket);
    send(kit, channels.commands(id), samples['commandList'], retainedPublishPacket);
  }
}

/** A position of the kit's next asset, with the time at which it was sent. */
function move(kit: FleetKit): void {
  const asset_id = kit.assets[kit.seq % assets_of_kit] ?? '';
  const data = { lat: 47.39 + kit.seq / 1e6, lon: 8.54, alt_m: 535.3, ground_speed: 8.2, heading: 90 };
  send(kit, channels.feed(asset_id, 'gps'), { ...data, sent_ms: Date.now() }, publishPacket);
}

async function allAcknowledged(): Promise<void> {
  if (unacknowledged === 0) return;
  await new Promise<void>((resolve) => {
    onAcknowledged = resolve;
  });
}

let kits: readonly FleetKit[] = [];

async function obey(order: FleetOrder): Promise<number> {
  switch (order.kind) {
    case 'connect':
      kits = await Promise.all(order.kit_ids.map(async (id) => connectKit(id, order.port)));
      for (const kit of kits) introduce(kit);
      break;
    case 'burst':
      for (let round = 0; round < order.of_each; round += 1) for (const kit of kits) move(kit);
      break;
    case 'pace':
    default:
      await pace(order);
  }
  await allAcknowledged();
  return kits.reduce((sum, kit) => sum + kit.seq, 0);
}

/** So many messages a second from all kits in turn. */
async function pace({ per_s, seconds }: { readonly per_s: number; readonly seconds: number }): Promise<void> {
  const start_ms = performance.now();
  const total = per_s * seconds;
  let sent = 0;
  const over = new AbortController();
  const done = new Promise<void>((resolve) => {
    every(tick_ms, over.signal, () => {
      const due = Math.min(total, Math.floor(((performance.now() - start_ms) / 1_000) * per_s));
      for (; sent < due; sent += 1) {
        const kit = kits[sent % kits.length];
        if (kit) move(kit);
      }
      if (sent === total) resolve();
    });
  });
  await done;
  over.abort();
}

process.on('message', (order: FleetOrder) => {
  obey(order).then(
    (sent) => process.send?.({ sent } satisfies FleetAnswer),
    (error: unknown) => process.send?.({ fault: String(error) } satisfies FleetAnswer),
  );
});
process.on('disconnect', () => process.exit(0));
