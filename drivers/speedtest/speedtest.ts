/** Measures a link on request: a command of the kit's gateway, bounded in data and time, one test at a time. */
import { join } from 'node:path';
import { z } from 'zod';
import { noFeeds } from '../../src/contract/feeds.ts';
import { type Speedtest, speedtest as speedtestResult, type LinkType } from '../../src/contract/kit.ts';
import type { JsonObject } from '../../src/contract/json.ts';
import { type CommandContext, defineCommand } from '../../src/toolkit/driver/command.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { CommandRefused, messageOf } from '../../src/platform/errors.ts';
import { aborted } from '../../src/platform/time.ts';
import { findTarget, measureLatency } from './connection.ts';
import { measure, type Measured } from './measure.ts';
import { texts } from './texts.ts';
import { readTextUpTo, table_bytes_max } from '../../src/platform/bounded-file.ts';
import { readStateText } from '../../src/toolkit/device/state-file.ts';
import { replaceFile } from '../../src/platform/replace-file.ts';
import { kernelRoutes } from '../../src/platform/linux/route-lookup.ts';
import { readText } from '../../src/toolkit/device/system-files.ts';
import { numberIn, textUpTo, wholeIn } from '../../src/toolkit/driver/option-types.ts';

// The options of the speedtest driver.

const interfaceName = textUpTo(64);
const httpUrl = z
  .url({ protocol: /^https?$/u })
  .max(2_048)
  .refine((url) => !/^https?:\/\/[^/]*@/u.test(url), 'may not hold a user name or password');

const server = z.strictObject({
  name: textUpTo(64).describe('what the command calls it'),
  download_url: httpUrl.describe('answers GET with data; {bytes} in it is replaced by the number wanted'),
  upload_url: httpUrl
    .optional()
    .describe('reads the body of a POST to its end; the upload is not measured when left out'),
  ca_file: z.string().min(1).optional().describe('PEM file of the authority, where it is a private one'),
});
type Server = z.output<typeof server>;

export const speedtestOptions = z.strictObject({
  servers: z.array(server).min(1).max(16).describe('the first one is used when the command names none'),
  bytes_max: wholeIn(200_000, 1_000_000_000)
    .default(25_000_000)
    .describe('data in each direction at most, bytes'),
  seconds_max: numberIn(1, 60).default(10).describe('time for each direction at most'),
  connections: wholeIn(1, 8)
    .default(4)
    .describe('connections at once: one alone does not fill a link with a long delay'),
  metered: z
    .array(interfaceName)
    .max(32)
    .default([])
    .describe(
      'links, by name, that a speed test refuses to use as it refuses cellular and satellite links; neither wan.NAME.metered of links nor uplink.metered changes that, since 50 MB cost more than probes do',
    ),
  roots: z
    .strictObject({
      proc: z.string().default('/proc').describe('where /proc is'),
      sys: z.string().default('/sys').describe('where /sys is'),
    })
    .prefault({})
    .describe('where the kernel shows itself, for containers'),
});
type SpeedtestOptions = z.output<typeof speedtestOptions>;

type SpeedtestHost = DriverHost<typeof noFeeds>;

/** Name look-ups, handshakes and the answer to an upload, beside the two transfers. */
const overhead_ms = 60_000;

const speedtestInput = z.strictObject({
  link: textUpTo(64).optional().describe('interface name; the default route when left out'),
  server: textUpTo(64).optional().describe('name of a configured server; the first one when left out'),
  allow_metered: z.boolean().default(false).describe('true: also where data cost money'),
});
type SpeedtestInput = z.output<typeof speedtestInput>;

export const speedtest = defineDriver({
  name: 'speedtest',
  feeds: noFeeds,
  options: speedtestOptions,
  run: runSpeedtest,
});

async function runSpeedtest(options: SpeedtestOptions, host: SpeedtestHost): Promise<void> {
  const file = host.stateFile('last-result.json');
  const last = await readLast(file).catch((error: unknown) => {
    host.log.warn({ file, reason: messageOf(error) }, texts.unreadable);
    return undefined;
  });
  if (host.signal.aborted) return;
  host.reportKit(last ? { speedtest: last } : {});
  let running: Promise<JsonObject> | undefined;
  const command = defineCommand({
    name: 'speedtest',
    description: `Measures a WAN link with up to ${options.bytes_max / 1e6} MB in each direction; others on the link are slowed down meanwhile`,
    risk_level: 'medium',
    requires_approval: true,
    timeout_ms: options.seconds_max * 2_000 + overhead_ms,
    input: speedtestInput,
    handle: async (input, context) => {
      if (running) throw new CommandRefused(texts.already_running);
      running = runTest(options, input, { host, context, file });
      try {
        return await running;
      } finally {
        running = undefined;
      }
    },
  });
  host.serveGateway([command]);
  await aborted(host.signal);
  await running?.catch(() => undefined);
}

interface Surroundings {
  readonly host: SpeedtestHost;
  readonly context: CommandContext;
  readonly file: string;
}

async function runTest(
  options: SpeedtestOptions,
  input: SpeedtestInput,
  { host, context, file }: Surroundings,
): Promise<JsonObject> {
  const signal = AbortSignal.any([context.signal, host.signal]);
  const server = chooseServer(options, input.server);
  const { device, metered } = await chooseWay(options, input.link, host.linkType);
  if (metered && !input.allow_metered) {
    throw new CommandRefused(texts.link_metered(device));
  }
  host.log.info({ link: device, server: server.name }, texts.started);
  const figures = await measureBoth(options, server, { device, signal, progress: context.progress });
  const { latency_ms, down, up } = figures;
  const timestamp = new Date().toISOString();
  const result = { download_mbps: down.mbps, upload_mbps: up?.mbps ?? null, latency_ms, timestamp };
  host.reportKit({ speedtest: result });
  await keep(host, file, result);
  const bytes = { bytes_down: down.bytes, bytes_up: up?.bytes ?? 0 };
  host.log.info({ link: device, server: server.name, ...result, ...bytes }, texts.completed);
  return { ...result, ...bytes, link: device, server: server.name };
}

interface Ways {
  readonly device: string;
  readonly signal: AbortSignal;
  readonly progress: CommandContext['progress'];
}

interface Figures {
  readonly latency_ms: number | null;
  readonly down: Measured;
  readonly up: Measured | null;
}

async function measureBoth(options: SpeedtestOptions, server: Server, ways: Ways): Promise<Figures> {
  const { device, signal, progress } = ways;
  const { bytes_max, seconds_max, connections } = options;
  const ca = server.ca_file === undefined ? undefined : await readCa(server.ca_file);
  const targetOf = async (url: string) =>
    findTarget(new URL(url), { device, ca, signal }).catch((error: unknown) => {
      throw new CommandRefused(messageOf(error), { cause: error });
    });
  const share = String(Math.ceil(bytes_max / connections));
  const source = await targetOf(server.download_url.replaceAll('{bytes}', share));
  progress('latency', 0);
  const latency_ms = await measureLatency(source, signal);
  const common = { connections, limits: { bytes_max, ms_max: seconds_max * 1_000 }, signal };
  /** The two directions are the halves of the way; without an upload the first one is all of it. */
  const half = server.upload_url === undefined ? 1 : 0.5;
  const down = await measure({
    ...common,
    direction: 'download',
    target: source,
    progress: (message, pct) => progress(message, Math.round(pct * half)),
  });
  if (server.upload_url === undefined) return { latency_ms, down, up: null };
  const up = await measure({
    ...common,
    direction: 'upload',
    target: await targetOf(server.upload_url),
    progress: (message, pct) => progress(message, Math.round(50 + pct / 2)),
  });
  return { latency_ms, down, up };
}

function chooseServer({ servers }: SpeedtestOptions, name: string | undefined): Server {
  const found = name === undefined ? servers[0] : servers.find((each) => each.name === name);
  if (found) return found;
  const known = servers.map((each) => each.name).join(', ');
  throw new CommandRefused(texts.server_unknown(name, known));
}

async function readCa(file: string): Promise<string> {
  return readTextUpTo(file, table_bytes_max).catch((error: unknown) => {
    throw new CommandRefused(texts.ca_unreadable(messageOf(error)), { cause: error });
  });
}

/** A result that cannot be written down was measured all the same. */
async function keep(host: SpeedtestHost, file: string, result: Speedtest): Promise<void> {
  await writeLast(file, result).catch((error: unknown) => {
    host.log.warn({ file, reason: messageOf(error) }, texts.not_saved);
  });
}

/** The last result, or undefined when there is none. Throws when the file holds anything else. */
export async function readLast(file: string): Promise<Speedtest | undefined> {
  const text = await readStateText(file);
  return text === undefined ? undefined : speedtestResult.parse(JSON.parse(text));
}

/** Replaces the file as a whole, so that a power cut leaves the old one or the new one. */
export async function writeLast(file: string, result: Speedtest): Promise<void> {
  await replaceFile(file, `${JSON.stringify(result)}\n`);
}

export interface Way {
  /** Interface name. */
  readonly device: string;
  readonly metered: boolean;
}

/**
 * The named link, or that of the default route. Metered is what the options name, and a cellular or satellite link as the drivers of the
 * links report it; where none does, what looks like a modem. Throws `CommandRefused` when the
 * link does not exist.
 */
export async function chooseWay(
  options: SpeedtestOptions,
  link: string | undefined,
  linkType: (name: string) => LinkType | null,
): Promise<Way> {
  const { proc, sys } = options.roots;
  const device =
    link ?? (await kernelDevice(proc)) ?? defaultDevice((await readText(join(proc, 'net/route'))) ?? '');
  if (device === undefined) throw new CommandRefused(texts.no_default_route);
  // What the operator sends must not lead out of the folder of the links.
  const isName = /^[^/\s]{1,64}$/u.test(device) && device !== '.' && device !== '..';
  const uevent = (isName ? await readText(join(sys, 'class/net', device, 'uevent')) : undefined) ?? '';
  if (uevent === '') throw new CommandRefused(texts.link_unknown(device));
  const isCostly = costs(linkType(device), device, uevent);
  return { device, metered: isCostly || options.metered.includes(device) };
}

function costs(type: LinkType | null, device: string, uevent: string): boolean {
  if (type !== null) return type === 'cellular' || type === 'satellite';
  return /^DEVTYPE=wwan$/mu.test(uevent) || /^(?:ppp|wwan)\d/u.test(device);
}

/** Addresses of the internet to which a machine has no route of its own; nothing is sent there. */
const anywhere = ['4.0.0.1', '2600::1'] as const;

/** The device by which the kernel sends to the internet: by IPv4, else by IPv6. Undefined where `proc` is another network's. */
async function kernelDevice(proc: string): Promise<string | undefined> {
  if (proc !== '/proc') return undefined;
  for (const ip of anywhere) {
    const route = await kernelRoutes.find({ ip }).catch(() => null);
    if (route?.interface) return route.interface;
  }
  return undefined;
}

/** Pure: the device of the default route with the lowest metric, from the text of /proc/net/route. */
export function defaultDevice(table: string): string | undefined {
  const routes = table
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .filter(([, destination, , flags, , , , mask]) => destination === zero && mask === zero && isUp(flags));
  const [best] = routes.sort(([, , , , , , a], [, , , , , , b]) => Number(a) - Number(b));
  return best?.[0];
}

const zero = '00000000';
const rtf_up = 0x1;

function isUp(flags = '0'): boolean {
  return (Number.parseInt(flags, 16) & rtf_up) !== 0;
}
