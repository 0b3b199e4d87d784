/** A connector between accepted message and broker, with a witness behind the broker and somebody who checks the books. */
import { join } from 'node:path';
import { every } from '../../../src/platform/time.ts';
import type { Lane } from '../../../src/contract/lanes.ts';
import type { LedgerReport } from '../../../src/kit/outbox/live/ledger.ts';
import {
  startMosquitto,
  unthrottled,
  type Broker,
  type BrokerOptions,
} from '../../support/brokers/broker.ts';
import { startConnector, type Connector, type ConnectorOptions } from '../../support/kit/connector.ts';
import { eventually } from '../../support/eventually.ts';
import { flight, stamped } from '../../support/gps.ts';
import { startProxy, type Proxy } from '../../support/brokers/proxy.ts';
import {
  startSubscriber,
  type Subscriber,
  type SubscriberOptions,
} from '../../support/brokers/subscriber.ts';
import { withDirectory } from '../../support/temporary.ts';

export interface Lab {
  readonly dir: string;
  readonly broker: Broker;
  /** Between connector and broker; the subscriber stands on the other side of it. */
  readonly proxy: Proxy;
  /** Sentences that a connector logged. */
  readonly lines: string[];
  /** Connections made so far, all connectors together. */
  readonly connections: () => number;
  start(options?: Partial<ConnectorOptions>): Promise<Connector>;
  subscribe(options?: Partial<SubscriberOptions>): Promise<Subscriber>;
  /** Accepts messages at a steady pace until the lab closes or the answer is called. */
  produce(connector: Connector, lanes: readonly Lane[], per_second: number): () => void;
}

const books_every_ms = 10;
const produce_tick_ms = 10;

/** Runs `fn` in a fresh lab; fails if the books of a connector were wrong at any moment. */
export async function withLab(options: BrokerOptions, fn: (lab: Lab) => Promise<void>): Promise<void> {
  await withDirectory(async (dir) => {
    const end = new AbortController();
    const broker = await startMosquitto({ ...options, conf: [...unthrottled, ...(options.conf ?? [])] });
    const proxy = await startProxy(broker.port);
    const connectors: Connector[] = [];
    const subscribers: Subscriber[] = [];
    const wrong: LedgerReport[] = [];
    const lines: string[] = [];
    let connections = 0;
    const data = flight();
    const lab: Lab = {
      dir,
      broker,
      proxy,
      lines,
      connections: () => connections,
      async start(changes = {}) {
        const connector = await startConnector({
          file: join(dir, `buffer-${connectors.length}.db`),
          url: `mqtt://127.0.0.1:${proxy.port}`,
          log: (sentence) => lines.push(sentence),
          onConnected: () => (connections += 1),
          ...changes,
        });
        connectors.push(connector);
        every(books_every_ms, end.signal, () => {
          const books = connector.outbox.ledger();
          if (!balances(books)) wrong.push(books);
        });
        return connector;
      },
      async subscribe(changes = {}) {
        const subscriber = await startSubscriber(broker.port, changes);
        subscribers.push(subscriber);
        return subscriber;
      },
      produce(connector, lanes, per_second) {
        const stop = new AbortController();
        const begin_ms = performance.now();
        let sent = 0;
        every(produce_tick_ms, AbortSignal.any([stop.signal, end.signal]), () => {
          const due = ((performance.now() - begin_ms) / 1000) * per_second;
          for (; sent < due; sent++) {
            connector.send(lanes[sent % lanes.length] ?? 'feed', sent, stamped(data.next().value));
          }
        });
        return () => stop.abort();
      },
    };
    try {
      await fn(lab);
    } finally {
      end.abort();
      for (const connector of connectors) await connector.stop();
      for (const subscriber of subscribers) await subscriber.stop();
      await proxy.close();
      await broker.stop();
    }
    const [first] = wrong;
    if (first) throw new Error(`the books were wrong ${wrong.length} times, first: ${JSON.stringify(first)}`);
  });
}

/** Counted here, not believed: accepted = delivered + buffered + quarantined + dropped. */
export function balances({ accepted, delivered, buffered, quarantined, dropped }: LedgerReport): boolean {
  const lost = Object.values(dropped).reduce((sum, rows) => sum + rows, 0);
  return accepted === delivered + buffered + quarantined + lost;
}

/** Resolves once everything that was accepted is delivered, and the witness has seen every number of it. */
export async function everythingArrives(connector: Connector, subscriber: Subscriber): Promise<void> {
  const { outbox } = connector;
  await eventually('nothing is buffered any more', () => outbox.ledger().buffered === 0);
  const { accepted } = outbox.ledger();
  const seen = await subscriber.until(({ unique }) => unique >= accepted);
  if (seen.unique !== accepted) throw new Error(`${seen.unique} of ${accepted} accepted messages arrived`);
}

export async function connected(connector: Connector): Promise<void> {
  await eventually('connected', () => connector.uplink.online);
}

/** Resolves once a connector has sent something again so many times, after pauses; returns the bytes of it. */
export async function triedAgain({ proxy }: Lab, times: number): Promise<number> {
  const first_bytes = proxy.counters.up_bytes;
  let [before_bytes, tries] = [first_bytes, 0];
  await eventually('it is tried again', () => {
    const { up_bytes } = proxy.counters;
    if (up_bytes > before_bytes) tries += 1;
    before_bytes = up_bytes;
    return tries >= times;
  });
  return before_bytes - first_bytes;
}
