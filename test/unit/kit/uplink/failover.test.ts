/** A change of the route to the broker: none of the uplink's waits stands between it and the next delivery. */
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BrokerAddresses } from '../../../../src/mqtt/broker-addresses.ts';
import { type OpenTransport, transportOver } from '../../../../src/mqtt/socket.ts';
import type { Route, Routes } from '../../../../src/platform/linux/route-lookup.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import {
  type Peer,
  type ScriptedBroker,
  startScriptedBroker,
} from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { type Connector, startConnector } from '../../../support/kit/connector.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const hour_ms = 3_600_000;
const ethernet: Route = { ifindex: 2, interface: 'eth0', source_ip: '127.0.0.2' };
const satellite: Route = { ifindex: 3, interface: 'sat0', source_ip: '127.0.0.3' };

const silent = (): void => undefined;

/** A kernel that sends packets by the way that the test chooses; the only name server stands behind the Ethernet. */
function kernel() {
  let way = ethernet;
  const { lookup } = new BrokerAddresses({
    system: async () =>
      way === ethernet ? [{ address: '127.0.0.1', family: 4 }] : new Promise<never>(silent),
    servers: async () => Promise.reject(new Error('no other name server')),
  });
  let report: () => void = () => undefined;
  const routes: Routes = {
    find: async ({ source_ip = way.source_ip }) => ({ ...way, source_ip }),
    watch: async (onChange) => void (report = onChange),
  };
  const openTransport: OpenTransport = async ({ url }, signal) => {
    const { hostname: host, port } = new URL(url);
    const localAddress = way.source_ip ?? '';
    const tcp = connect({ host, port: Number(port), localAddress, noDelay: true, lookup });
    return { ...(await transportOver(tcp, signal)), tcp };
  };
  return {
    routes,
    openTransport,
    move: (next: Route) => {
      way = next;
      report();
    },
  };
}

describe('a change of the route', () => {
  let broker: ScriptedBroker;
  let connector: Connector | undefined;
  let tables: ReturnType<typeof kernel>;
  const lines: string[] = [];

  beforeEach(async () => {
    broker = await startScriptedBroker();
    tables = kernel();
    lines.length = 0;
  });
  afterEach(async () => {
    // Peers that were silenced answer again, for the farewell.
    broker.follow({});
    await connector?.stop();
    await broker.close();
  });

  /** The clock of the uplink stands still and its pauses take hours: nothing that waits for them happens in a test. */
  const start = async (url = broker.url): Promise<Connector> => {
    connector = await startConnector({
      file: join(await makeDirectory(), 'buffer.db'),
      url,
      routes: tables.routes,
      openTransport: tables.openTransport,
      now: () => 0,
      retry_ms: hour_ms,
      connect_timeout_ms: hour_ms,
      log: (sentence, facts) => void lines.push(`${sentence} ${JSON.stringify(facts)}`),
    });
    return connector;
  };
  const sentBy = (mark: string): boolean => broker.published.some(({ payload }) => payload.includes(mark));

  it('is followed by a delivery over the other link without any wait, also when the old one falls silent', async () => {
    const started = await start();
    const { uplink } = started;
    await eventually('a session over Ethernet', () => uplink.online && uplink.interface === 'eth0');
    broker.follow({ onPublish: silent });
    started.send('alarm', 1, { mark: 'before' });
    await eventually('in flight', () => sentBy('before'));
    broker.follow({});
    tables.move(satellite);
    started.send('alarm', 1, { mark: 'after' });
    await eventually('delivered', () => connector?.acknowledged === 2 && sentBy('after'));
    expect([broker.peers.length, uplink.interface]).toEqual([2, 'sat0']);
    expect(lines.filter((line) => line.includes(texts.route_changed))).toHaveLength(1);
  });

  it('is followed also where the name of the broker was resolved by a server behind the dead link', async () => {
    const started = await start(`mqtt://broker.test:${new URL(broker.url).port}`);
    const { uplink } = started;
    await eventually('a session over Ethernet', () => uplink.online && uplink.interface === 'eth0');
    tables.move(satellite);
    started.send('alarm', 1, { mark: 'after' });
    await eventually('delivered', () => connector?.acknowledged === 1 && sentBy('after'));
    expect([broker.peers.length, uplink.interface]).toEqual([2, 'sat0']);
  });

  it.each<[string, { onSubscribe: () => void } | { onPublish: () => void }]>([
    ['the subscription', { onSubscribe: silent }],
    ['the birth', { onPublish: silent }],
  ])('ends a session that waits for the answer to %s', async (_, script) => {
    broker.follow(script);
    const started = await start();
    const { uplink } = started;
    await eventually('a connection', () => broker.peers.length === 1);
    const [first] = broker.peers as readonly [Peer];
    let isClosed = false;
    first.onClose(() => (isClosed = true));
    if ('onPublish' in script) await eventually('the birth', () => broker.published.length > 0);
    broker.follow({});
    tables.move(satellite);
    started.send('alarm', 1, { mark: 'after' });
    await eventually('delivered', () => connector?.acknowledged === 1);
    expect([isClosed, broker.peers.length, uplink.interface]).toEqual([true, 2, 'sat0']);
  });
});

describe('a stop', () => {
  it('does not wait for a broker that accepted the connection and answers no subscription', async () => {
    const broker = await startScriptedBroker({ onSubscribe: () => undefined });
    const connector = await startConnector({
      file: join(await makeDirectory(), 'buffer.db'),
      url: broker.url,
      connect_timeout_ms: hour_ms,
    });
    await eventually('a connection', () => broker.peers.length === 1);
    await connector.stop();
    await broker.close();
    expect(connector.uplink.status().state).toBe('stopped');
  });
});
