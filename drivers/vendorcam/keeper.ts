/** Keeps one host served: connects, polls, and tries again later when it is lost, without a word to the other hosts. */
import { DeviceRejected, DeviceUnreachable, messageOf } from '../../src/errors.ts';
import { pinnedHttp } from '../../src/platform/pinned-http.ts';
import { aborted, backoff, sleep, within } from '../../src/platform/time.ts';
import { Arrangement, type Host } from './arrangement.ts';
import { Contact } from './contact.ts';
import {
  type ChannelFacts,
  channelsOf,
  channelStatusCommand,
  describeHost,
  type HostFacts,
} from './describe.ts';
import { Device } from './device.ts';
import { GivenUp, TryLater } from './failure.ts';
import type { Limits } from './limits.ts';
import { certificateCheck, fileNameOf, Memory, readPassword } from './memory.ts';
import { Motors } from './motors.ts';
import { type HostOptions, portOf, type VendorcamOptions } from './options.ts';
import { poll } from './poll.ts';

export interface KeeperParts {
  readonly host: Host;
  readonly options: VendorcamOptions;
  readonly camera: HostOptions;
  readonly limits: Limits;
  /** False when another host of this driver has the asset already. */
  readonly claim: (asset_key: string) => boolean;
  /** Shown in the status of the driver. */
  readonly tell: (state: string) => void;
}

interface Served extends KeeperParts {
  readonly device: Device;
  readonly contact: Contact;
  readonly motors: Motors;
  readonly arrangement: Arrangement;
}

/** Resolves when the host's signal aborts, or with the reason when the device refuses us for good. */
export async function keepHost(parts: KeeperParts): Promise<string | undefined> {
  const { host, camera, limits } = parts;
  const file = fileNameOf('host', `${camera.host.toLowerCase()} ${portOf(camera)}`);
  const memory = await Memory.open(host.stateFile(file), host.log);
  /** Ends later than the driver's own signal: a Stop and the logout come after it. */
  const life = new AbortController();
  const served = build(parts, memory, life.signal);
  if (!camera.tls) {
    host.log.warn({ host: camera.name }, 'tls is off: the password crosses the network in the clear');
  }
  const serving = serveAgainAndAgain(served);
  try {
    await Promise.race([serving, aborted(host.signal)]);
    await within(limits.farewell_ms, farewell(served));
  } finally {
    life.abort();
    served.device.close();
  }
  return serving;
}

function build(parts: KeeperParts, memory: Memory, life: AbortSignal): Served {
  const { host, camera, limits, options, claim } = parts;
  const device = new Device({
    http: pinnedHttp({
      host: camera.host,
      port: portOf(camera),
      tls: camera.tls,
      check: certificateCheck(camera, memory, host.log),
      connect_ms: limits.request_ms,
      reply_bytes_max: limits.reply_bytes_max,
      refused_remedy:
        'switch HTTPS on in its network settings (firmware updates switch it off), or check port and tls',
    }),
    username: camera.username,
    password: async () => readPassword(camera.password_file),
    saved: { session: memory.facts.session, refused: memory.facts.refused },
    save: async (change) => memory.change(change),
    limits,
    signal: host.signal,
  });
  const contact = new Contact();
  const save = async (owed_stops: readonly number[]) => memory.change({ owed_stops: [...owed_stops] });
  const motors = new Motors({ device, limits, owed: memory.facts.owed_stops, save, signal: life });
  const controls = {
    device,
    motors,
    contact,
    limits,
    allowed: camera.commands,
    ptz_move_max_ms: options.ptz_move_max_s * 1_000,
    signal: host.signal,
  };
  const heartbeat_ms = options.heartbeat_s * 1_000;
  const arrangement = new Arrangement({ host, options: camera, device, controls, heartbeat_ms, claim });
  return { ...parts, device, contact, motors, arrangement };
}

/** Nothing moves on, nothing stays detected, and the session is given back. */
async function farewell({ motors, arrangement, device }: Served): Promise<void> {
  arrangement.quiet('the connector was stopped');
  await motors.idle();
  await motors.settle().catch(() => undefined);
  await device.session.end();
}

async function serveAgainAndAgain(served: Served): Promise<string | undefined> {
  const { host, camera, limits, contact, arrangement, tell } = served;
  const outage = outageLog(host, camera.name);
  let pauses = backoff(limits.retry_first_ms, limits.retry_max_ms);
  while (!host.signal.aborted) {
    let up_since_ms: number | undefined;
    try {
      await serve(served, () => {
        up_since_ms = performance.now();
        outage.over();
        contact.up();
      });
    } catch (error) {
      if (host.signal.aborted) break;
      const reason = contact.isExpectedBack ? 'restarts as it was told' : messageOf(error);
      contact.down();
      arrangement.lose(reason);
      tell(reason);
      if (error instanceof DeviceRejected) {
        host.log.error(
          { host: camera.name, reason },
          'device refuses the connector; waiting for a new configuration',
        );
        return reason;
      }
      if (up_since_ms !== undefined && performance.now() - up_since_ms >= limits.stable_ms) {
        pauses = backoff(limits.retry_first_ms, limits.retry_max_ms);
      }
      const retry_ms = Math.round(pauseAfter(error, served, pauses));
      outage.begins(reason, retry_ms);
      await sleep(retry_ms, host.signal);
    }
  }
  return undefined;
}

function pauseAfter(error: unknown, { contact, limits }: Served, pauses: Iterator<number, never>): number {
  if (error instanceof TryLater) return error.retry_ms;
  return contact.isExpectedBack ? limits.reboot_retry_ms : pauses.next().value;
}

/** One connection: until the signal aborts; rejects when the host is lost or refuses us. */
async function serve(served: Served, onUp: () => void): Promise<void> {
  const { host, camera, limits, device, motors, arrangement, contact } = served;
  device.startAnew();
  const password = await readPassword(camera.password_file);
  let known = await describe(served, password);
  onUp();
  await motors.settle().catch((error: unknown) => {
    host.log.warn(
      { host: camera.name, reason: messageOf(error) },
      'a move from before could not be stopped yet',
    );
  });
  let failures = 0;
  let losses = device.session.losses;
  while (!host.signal.aborted) {
    const begin_ms = performance.now();
    try {
      const { seen, channels } = await poll(device, arrangement.askings, known.facts);
      failures = 0;
      arrangement.see(seen);
      // A camera that was away for less than a poll is never lost, and still owes a Stop.
      await motors.settle().catch(() => undefined);
      if (channels && shapeOf(channels) !== known.shape) known = await describe(served, password);
      if (device.session.losses > losses) contact.up();
      losses = device.session.losses;
    } catch (error) {
      if (host.signal.aborted) return;
      // A poll that made room for a Stop says nothing about the host.
      if (!(error instanceof GivenUp)) failures += 1;
      if (isFinal(error) || failures >= limits.lost_after_polls || (failures > 0 && contact.isExpectedBack)) {
        throw error;
      }
    }
    await sleep(pauseOf(served, performance.now() - begin_ms, failures), host.signal);
  }
}

function isFinal(error: unknown): boolean {
  return !(error instanceof DeviceUnreachable) || error instanceof TryLater;
}

/** From the begin of one poll to the begin of the next, with some rest for the host between them in any case. */
function pauseOf({ options, limits, contact }: Served, took_ms: number, failures: number): number {
  const isSlow = failures > 0 || took_ms > limits.slow_reply_ms;
  const interval_ms = (isSlow && !contact.isExpectedBack ? options.poll_slow_s : options.poll_s) * 1_000;
  return Math.max(interval_ms - took_ms, interval_ms / 4);
}

interface Known {
  readonly facts: HostFacts;
  /** Of the recorder's channels. */
  readonly shape: string;
}

async function describe(served: Served, password: string): Promise<Known> {
  const { device, camera, limits, claim, arrangement, tell } = served;
  const facts = await describeHost(device, camera, limits);
  if (!claim(facts.asset_key)) {
    throw new DeviceRejected('is a device that another entry of hosts names already; remove one of them');
  }
  const channels = facts.isRecorder ? await recorderChannels(device) : [onlyChannel(facts)];
  await arrangement.arrange(facts, channels, password);
  const away = channels.filter(({ online, asleep }) => !online || asleep).length;
  tell(facts.isRecorder ? `online, ${channels.length} channels, ${away} of them away` : 'online');
  return { facts, shape: shapeOf(channels) };
}

async function recorderChannels(device: Device): Promise<readonly ChannelFacts[]> {
  const channels = channelsOf(await device.askOne(channelStatusCommand));
  if (!channels) throw new DeviceUnreachable('does not tell its channels');
  return channels;
}

function onlyChannel({ name, model }: HostFacts): ChannelFacts {
  return { channel: 0, name, model, uid: null, online: true, asleep: false };
}

function shapeOf(channels: readonly ChannelFacts[]): string {
  return JSON.stringify(channels);
}

/** Says once that a host is away and once that it is back, however many attempts lie between. */
function outageLog(host: Host, name: string) {
  let down_since_ms: number | undefined;
  return {
    begins(reason: string, retry_ms: number): void {
      if (down_since_ms !== undefined)
        host.log.debug({ host: name, reason, retry_ms }, 'device is still unavailable');
      else host.log.warn({ host: name, reason, retry_ms }, 'device is unavailable');
      down_since_ms ??= performance.now();
    },
    over(): void {
      if (down_since_ms === undefined) return;
      const down_s = (performance.now() - down_since_ms) / 1_000;
      host.log.info({ host: name, down_s }, 'device is back');
      down_since_ms = undefined;
    },
  };
}
