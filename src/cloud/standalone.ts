/** Runs the service for many kits: with its own database, connected to a broker. */
import { InvariantBroken } from '../platform/errors.ts';
import type { BrokerOptions } from '../mqtt/broker.ts';
import type { OpenTransport } from '../mqtt/socket.ts';
import { every } from '../platform/time.ts';
import { Attention } from './attention.ts';
import { Acks } from './broker/acks.ts';
import type { AmqpOptions } from './amqp/session.ts';
import { BrokerLink } from './broker/broker-link.ts';
import type { CloudLink } from './broker/cloud-link.ts';
import type { FileSettings } from './files/cloud-files.ts';
import { PartnerUpdates } from './broker/partner-updates.ts';
import { ShareCheck, share_times } from './broker/share-check.ts';
import { SyncRequests } from './broker/sync-requests.ts';
import { isOnline } from './api/views.ts';
import { Changes } from './changes.ts';
import type { ReceiverParts } from './ingest/receiver.ts';
import { type RunningService, type ServiceOptions, startService } from './start.ts';
import type { OpenedStore } from './open-store.ts';
import type { Committed } from './stored/stored.ts';
import { VideoRelay } from './video/video-relay.ts';
import { relayed } from './video/relayed-assets.ts';

/** Messages that arrive within this time are committed together. */
const group_ms = 5;
/** A promoted server may have other settings. */
const replication_every_ms = 60_000;

export interface StandaloneOptions extends Omit<
  ServiceOptions,
  'dispatcher' | 'group_ms' | 'unready' | 'onCommitted' | 'onPartner' | 'changes' | 'video' | 'files'
> {
  /** Undefined with `amqp`. */
  readonly broker: BrokerOptions | undefined;
  /** The same with its credentials as they are on disk now; left out: they stay. */
  readonly renew?: (() => Promise<BrokerOptions>) | undefined;
  /** Left out: MQTT. */
  readonly amqp?: AmqpOptions | undefined;
  readonly client_id: string;
  /** Name of the shared subscription of all replicas; undefined: a single service. */
  readonly share?: string | undefined;
  readonly followReplicas?: OpenedStore['followReplicas'];
  readonly passAnswer?: OpenedStore['passAnswer'];
  readonly replicationFault?: OpenedStore['replicationFault'];
  /** Looks whether a message is stored; left out: the shared subscription is not looked at. */
  readonly isReceived?: OpenedStore['isReceived'];
  /** How contents of files are kept; left out: none are. */
  readonly files?: FileSettings | undefined;
  /** Left out: sockets of the operating system. */
  readonly openTransport?: OpenTransport | undefined;
}

export interface StandaloneService extends RunningService {
  /** What works and should not stay as it is. */
  readonly attention: Attention;
}

/** Starts the service. Rejects when the database cannot be read or the address cannot be bound. An unreachable broker is retried. */
export async function startStandalone({
  broker,
  renew,
  amqp,
  client_id,
  share,
  followReplicas,
  passAnswer,
  replicationFault,
  isReceived,
  openTransport,
  files,
  ...options
}: StandaloneOptions): Promise<StandaloneService> {
  const { log, store } = options;
  const ends = new AbortController();
  const { signal } = ends;
  const changes = new Changes();
  const attention = new Attention(log);
  const link = await linkOf(
    { broker, renew, amqp, client_id, share, openTransport },
    {
      log,
      take: async (reception) => service.take(reception),
      room: async () => service.room(),
      onAnswer: (topic, payload) => video.receive(topic, payload),
      shareCheck: shareCheckOf({ share, isReceived, store, attention }),
      count: (event) => options.meter?.broker(event),
    },
  );
  const video = new VideoRelay({
    send: async (kit_id, request) => link.sendViewer(kit_id, request),
    pass: passAnswer,
    log,
  });
  const { acks, syncs, partners } = followers({ store, log, link, signal });
  const onCommitted = noteIn({ acks, syncs, partners });
  const unready = (): string | undefined =>
    link.isUp ? undefined : 'the service is not connected to the broker';
  const service: RunningService = await startService({
    ...options,
    store: relayed(store),
    video,
    files: files && { settings: files, send: async (...answer) => link.sendFile(...answer) },
    dispatcher: link,
    group_ms,
    unready,
    onCommitted,
    onPartner: ({ kit_id }) => partners.note([kit_id]),
    changes,
  });
  const linked = Promise.all([
    link.run(signal),
    followReplicas?.(changes, log, signal, (text) => video.receivePassed(text)),
  ]);
  if (replicationFault) keepLooking(replicationFault, attention, signal);
  return {
    ...service,
    attention,
    async stop() {
      ends.abort();
      await linked;
      await service.stop();
    },
  };
}

type LinkOptions = Pick<
  StandaloneOptions,
  'broker' | 'renew' | 'amqp' | 'client_id' | 'share' | 'openTransport'
>;
interface LinkParts extends ReceiverParts {
  readonly log: ServiceOptions['log'];
  readonly shareCheck: ShareCheck | undefined;
  readonly count: (event: 'connected' | 'redelivered') => void;
}

interface Sharing extends Pick<StandaloneOptions, 'share' | 'isReceived' | 'store'> {
  readonly attention: Attention;
}

function shareCheckOf({ share, isReceived, store, attention }: Sharing): ShareCheck | undefined {
  if (share === undefined || !isReceived) return undefined;
  return new ShareCheck({
    share,
    isReceived,
    times: share_times,
    random: Math.random,
    hasOnlineKits: async () => (await store.kits('*')).some((kit) => isOnline(kit, Date.now())),
    report: (fault) => attention.set('subscription', fault),
  });
}

/** AMQP is loaded only where it is configured. */
async function linkOf(
  { broker, renew, amqp, client_id, share, openTransport }: LinkOptions,
  parts: LinkParts,
): Promise<CloudLink> {
  if (amqp) return new (await import('./amqp/amqp-link.ts')).AmqpLink({ ...parts, amqp });
  if (!broker) throw new InvariantBroken('the service has neither a broker nor a queue');
  return new BrokerLink({ ...parts, broker, renew, client_id, share, openTransport });
}

/** While the database does not answer, what is known stays. */
function keepLooking(
  replicationFault: () => Promise<string | undefined>,
  attention: Attention,
  signal: AbortSignal,
): void {
  const look = async (): Promise<void> => attention.set('replication', await replicationFault());
  const check = (): void => void look().catch(() => undefined);
  check();
  every(replication_every_ms, signal, check);
}

/** What goes back to the kits after commits. */
function followers({
  store,
  log,
  link,
  signal,
}: Pick<ServiceOptions, 'store' | 'log'> & {
  readonly link: CloudLink;
  readonly signal: AbortSignal;
}): Followers {
  const acks = new Acks({
    store,
    log,
    send: async (kit_id, ack, isNewest) => link.acknowledge(kit_id, ack, isNewest),
    reportsRefusals: () => link.reports_refusals,
    signal,
  });
  const syncs = new SyncRequests({
    isOnline: async (kit_id) => (await store.kit(kit_id))?.state?.online === true,
    async request(kit_id) {
      await link.requestSync(kit_id);
      // An old copy of its state may have been put back: what it says counts as older here, its birth too, until it begins an epoch
      // above the numbers of the newest one, which it did not give out.
      const [newest] = await store.acks(kit_id);
      if (newest) acks.note([{ kit_id, ack: newest }]);
    },
    signal,
  });
  return { acks, syncs, partners: new PartnerUpdates({ store, link, log, signal }) };
}

interface Followers {
  readonly acks: Acks;
  readonly syncs: SyncRequests;
  readonly partners: PartnerUpdates;
}

function noteIn({ acks, syncs, partners }: Followers) {
  return (committed: Committed): void => {
    acks.note(committed.acks);
    syncs.note(committed);
    partners.note(committed.births);
  };
}
