/**
 * Brokers of clouds that enforce what their documents say, at a rate above or at their limits for a while: nothing is lost, no rule is
 * broken, and no connection ends. The delay of live messages is shown: seconds on a machine show it, not the test.
 */
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openTransport } from '../../../../src/mqtt/socket.ts';
import { sleep } from '../../../../src/platform/time.ts';
import { type clouds, fakeCloud } from '../../../fakes/fake-cloud-broker.ts';
import { startScriptedBroker } from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { startConnector } from '../../../support/kit/connector.ts';
import { makeDirectory } from '../../../support/temporary.ts';

/** What one drone makes a second at the default rates. */
const drone_per_s = 15;
const seconds = 20;

const rows: readonly {
  readonly cloud: keyof typeof clouds;
  readonly host: string;
  readonly drones: number;
  readonly connections?: number;
  readonly broken?: readonly string[];
}[] = [
  { cloud: 'aws', host: 'a1-ats.iot.eu-central-1.amazonaws.com', drones: 12 },
  { cloud: 'azure', host: 'fleet.westeurope-1.ts.eventgrid.azure.net', drones: 12 },
  {
    cloud: 'azure_before_2025',
    host: 'fleet.westeurope-1.ts.eventgrid.azure.net',
    drones: 12,
    connections: 2,
    broken: ['retained'],
  },
  { cloud: 'hivemq', host: 'a1.s1.eu.hivemq.cloud', drones: 12 },
  { cloud: 'emqx', host: 'a1.ala.eu-central-1.emqxsl.com', drones: 1 },
  { cloud: 'emqx', host: 'a1.ala.eu-central-1.emqxsl.com', drones: 12 },
];

it.each(rows)(
  '$cloud is steady with $drones drones',
  async ({ cloud, host, drones, connections = 1, broken = [] }) => {
    const fake = fakeCloud(cloud);
    const broker = await startScriptedBroker(fake.script);
    onTestFinished(async () => broker.close());
    const kit = await startConnector({
      file: join(await makeDirectory(), 'buffer.db'),
      url: `mqtt://${host}:1883`,
      ack: 'broker',
      openTransport: async (endpoint, signal) => openTransport({ ...endpoint, url: broker.url }, signal),
    });
    onTestFinished(async () => kit.stop());
    await eventually('connected', () => kit.uplink.online);
    const { signal } = new AbortController();
    const from_ms = performance.now();
    let sent = 0;
    while (performance.now() - from_ms < seconds * 1_000) {
      const due = ((performance.now() - from_ms) / 1_000) * drones * drone_per_s;
      for (; sent < due; sent += 1) kit.send('feed', sent % drones, { n: sent });
      await sleep(20, signal);
    }
    await eventually('delivered', () => kit.outbox.ledger().buffered === 0);
    const delays = [...fake.delays_ms.values()].toSorted((a, b) => a - b);
    const p99 = delays[Math.floor(delays.length * 0.99)];
    process.stdout.write(
      `${cloud}, ${drones} drones: ${sent} messages, ${broker.published.length} PUBLISH, p99 ${p99} ms\n`,
    );
    expect(kit.outbox.ledger()).toMatchObject({ accepted: sent, delivered: sent, balanced: true });
    expect(fake.delays_ms.size).toBe(sent);
    expect(fake.broken).toEqual(broken);
    expect(broker.peers).toHaveLength(connections);
  },
  120_000,
);
