/** The service for many kits: on a database of its own, fed by a broker. */
import { Acks } from './broker/acks.ts';
import { BrokerLink } from './broker/broker-link.ts';
import type { BrokerAddress } from './broker/mqtt-session.ts';
import { Changes } from './changes.ts';
import { type RunningService, type ServiceOptions, startService } from './start.ts';
import type { OpenedStore } from './store/open-store.ts';
import type { Committed } from './store/store.ts';

/** Messages that arrive within this time are committed together. */
const group_ms = 5;

export interface StandaloneOptions extends Omit<
  ServiceOptions,
  'dispatcher' | 'group_ms' | 'unready' | 'onCommitted' | 'changes'
> {
  readonly broker: BrokerAddress;
  readonly client_id: string;
  /** Name of the shared subscription of all replicas; undefined: this is the only one. */
  readonly share?: string | undefined;
  readonly hear?: OpenedStore['hear'];
}

/** Rejects when the database cannot be read or the address not be listened on. A broker that is away is waited for. */
export async function startStandalone({
  broker,
  client_id,
  share,
  hear,
  ...options
}: StandaloneOptions): Promise<RunningService> {
  const { log, store } = options;
  const ends = new AbortController();
  const { signal } = ends;
  const changes = new Changes();
  const link = new BrokerLink({
    broker,
    client_id,
    share,
    log,
    take: async (reception) => service.take(reception),
  });
  const acks = new Acks({
    store,
    send: async (kit_id, ack, isNewest) => link.acknowledge(kit_id, ack, isNewest),
    signal,
  });
  const onCommitted = (committed: Committed): void => {
    acks.note(committed.acks);
    // This database has never heard of the kit: what it said before is known to nobody here.
    for (const kit_id of committed.new_kits) void link.requestSync(kit_id).catch(() => undefined);
  };
  const unready = (): string | undefined =>
    link.isUp ? undefined : 'the service is not connected to the broker';
  const service: RunningService = await startService({
    ...options,
    dispatcher: link,
    group_ms,
    unready,
    onCommitted,
    changes,
  });
  const linked = Promise.all([link.run(signal), hear?.(changes, log, signal)]);
  return {
    ...service,
    async stop() {
      ends.abort();
      await linked;
      await service.stop();
    },
  };
}
