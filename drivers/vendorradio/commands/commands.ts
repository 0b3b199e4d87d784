/** The commands of a radio over ubus: permitted to its login and supported safely by its firmware. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { applySafely, type ChangeParts, seenAsWanted } from './change.ts';
import type { Found } from '../ubus/identify.ts';
import { type Channel, channelsOf, healthOf, powersOf, widthOf } from '../ubus/iwinfo.ts';
import type { Led } from './led.ts';
import { figure, goodRows, macText, text } from '../ubus/loose.ts';
import type { CommandName, UbusRadio, VendorradioOptions } from '../options.ts';
import { answerWords, type Call } from '../ubus/ubus-wire.ts';
import { texts } from '../texts.ts';
import type { Limits } from '../limits.ts';
import type { SessionHooks } from '../source.ts';
import type { Ubus } from '../ubus/ubus.ts';

export interface CommandParts {
  readonly ubus: Ubus;
  readonly radio: UbusRadio;
  readonly options: VendorradioOptions;
  readonly limits: Limits;
  readonly hooks: SessionHooks;
  readonly found: Found;
  readonly led: Led;
}

const scan_results_max = 64;

/** Reads the permitted channels and powers of the radio, for the schemas. */
export async function commandsFor(parts: CommandParts): Promise<readonly Command[]> {
  const { ubus, radio, found } = parts;
  const may = (object: string, method: string): boolean => ubus.grants?.mayCall({ object, method }) ?? false;
  const mayChange =
    found.profile === 'openwrt' &&
    ['get', 'set', 'apply', 'confirm'].every((method) => may('uci', method)) &&
    ubus.grants?.mayUci('wireless', 'write') === true;
  const offers: Readonly<Record<CommandName, () => Promise<Command | undefined>>> = {
    refresh: async () => refresh(parts),
    identify: async () => (parts.led.isOffered ? identify(parts) : undefined),
    scan: async () => (may('iwinfo', 'scan') ? scan(parts) : undefined),
    set_txpower: async () =>
      mayChange && may('uci', 'delete')
        ? setTxpower(parts, powersOf(await listed(parts, 'txpowerlist')))
        : undefined,
    set_channel: async () =>
      mayChange
        ? setChannel(parts, channelsOf(await listed(parts, 'freqlist'), found.info.frequency))
        : undefined,
    set_mesh_channel: async () => (may('message-system', 'chswitch') ? setMeshChannel(parts) : undefined),
    reboot: async () => (may('system', 'reboot') && may('system', 'info') ? reboot(parts) : undefined),
  };
  const commands: Command[] = [];
  for (const name of radio.commands) {
    const command = await offers[name]();
    if (command) commands.push(command);
  }
  return commands;
}

async function listed({ ubus, found }: CommandParts, method: string): Promise<unknown> {
  const call: Call = { object: 'iwinfo', method, args: { device: found.device } };
  if (!ubus.grants?.mayCall(call)) return undefined;
  const answer = await ubus.askOne(call);
  return answer.kind === 'ok' ? answer.body : undefined;
}

function refresh({ hooks }: CommandParts): Command {
  return defineCommand({
    name: 'refresh',
    description: 'Reads the state of the radio now',
    risk_level: 'low',
    repeatable: true,
    input: noInput,
    async handle(_input, { signal }) {
      const { link, stations } = await hooks.pollNow(signal);
      return { channel: link.channel, freq_mhz: link.freq_mhz, stations: stations?.length ?? null };
    },
  });
}

function identify({ led }: CommandParts): Command {
  return defineCommand({
    name: 'identify',
    description: 'Blinks an LED of the radio to locate it',
    risk_level: 'low',
    timeout_ms: 90_000,
    repeatable: true,
    input: z.strictObject({ seconds: z.int().min(1).max(60).default(10).describe('how long') }),
    async handle({ seconds }, { signal }) {
      try {
        await led.blink(signal);
        await sleep(seconds * 1_000, signal);
      } finally {
        await led.restore();
      }
      return { seconds };
    },
  });
}

const found_network = z.looseObject({
  ssid: text,
  bssid: macText,
  mode: text,
  channel: figure,
  signal: figure,
});

function scan({ ubus, found, limits }: CommandParts): Command {
  return defineCommand({
    name: 'scan',
    description: 'Scans for other networks; the radio leaves its channel for some seconds',
    risk_level: 'medium',
    timeout_ms: limits.scan_ms + 5_000,
    input: noInput,
    async handle(_input, { signal }) {
      const call: Call = { object: 'iwinfo', method: 'scan', args: { device: found.device } };
      const answer = await ubus.askOne(call, { deadline_ms: limits.scan_ms, signal });
      if (answer.kind !== 'ok') throw new CommandRefused(texts.scan_rejected(answerWords(answer)));
      const rows = goodRows(
        found_network,
        z.looseObject({ results: z.unknown() }).safeParse(answer.body).data?.results,
      );
      const networks = rows
        .toSorted((a, b) => (b.signal ?? -Infinity) - (a.signal ?? -Infinity))
        .slice(0, scan_results_max)
        .map(({ ssid, bssid, mode, channel, signal }) => ({ ssid, bssid, mode, channel, rssi: signal }));
      return { networks, truncated: rows.length > scan_results_max };
    },
  });
}

function changing({ ubus, found, radio, options, limits, hooks }: CommandParts): ChangeParts {
  const { device } = found;
  return { ubus, device, uci_radio: radio.uci_radio, rollback_s: options.rollback_s, limits, hooks };
}

/** For the change, its rollback if it fails, and the last check. */
function changeTime({ options, limits }: CommandParts): number {
  return options.rollback_s * 2_000 + limits.revert_ms;
}

function setTxpower(parts: CommandParts, powers: readonly number[]): Command | undefined {
  const [first, ...others] = powers.map((dbm) => z.literal(dbm));
  if (!first) return undefined;
  return defineCommand({
    name: 'set_txpower',
    description: `Sets the transmit power; rolled back when the radio does not answer with a peer within ${parts.options.rollback_s} s`,
    risk_level: 'medium',
    requires_approval: true,
    timeout_ms: changeTime(parts),
    input: z.strictObject({ dbm: z.union([first, ...others, z.literal('auto')]).describe('dBm, or auto') }),
    async handle({ dbm }, context) {
      const { info } = await applySafely(
        changing(parts),
        {
          values: { txpower: dbm === 'auto' ? null : String(dbm) },
          what: dbm === 'auto' ? 'the default power of its driver' : `${dbm} dBm`,
          holds: ({ txpower }) => (dbm === 'auto' ? txpower !== null : txpower === dbm),
        },
        context,
      );
      return { txpower_dbm: info.txpower };
    },
  });
}

function setChannel(parts: CommandParts, channels: readonly Channel[]): Command | undefined {
  const [first, ...others] = channels.map(({ channel }) => z.literal(channel));
  if (!first) return undefined;
  const { htmode, htmodelist } = parts.found.info;
  const kind = /^[A-Z]+/u.exec(htmode ?? '')?.[0] ?? '';
  const widths = htmodelist.filter((each) => /^[A-Z]+/u.exec(each)?.[0] === kind).map(widthOf);
  const [width, ...more_widths] = [...new Set(widths)]
    .filter((each) => each !== null)
    .map((each) => z.literal(each));
  const bandwidth_mhz = width ? z.union([width, ...more_widths]).optional() : z.never().optional();
  return defineCommand({
    name: 'set_channel',
    description: `Changes the channel of this radio alone; rolled back when it does not answer on the new channel with a peer within ${parts.options.rollback_s} s`,
    risk_level: 'high',
    timeout_ms: changeTime(parts),
    input: z.strictObject({ channel: z.union([first, ...others]), ...(width ? { bandwidth_mhz } : {}) }),
    async handle(input, context) {
      const wanted = channels.find(({ channel }) => channel === input.channel);
      const bandwidth = z
        .number()
        .optional()
        .parse('bandwidth_mhz' in input ? input.bandwidth_mhz : undefined);
      const { info, peers } = await applySafely(
        changing(parts),
        {
          values: {
            channel: String(input.channel),
            ...(bandwidth === undefined ? {} : { htmode: `${kind}${bandwidth}` }),
          },
          what: `channel ${input.channel}`,
          holds: (seen) =>
            seen.frequency === wanted?.mhz && (bandwidth === undefined || widthOf(seen.htmode) === bandwidth),
        },
        context,
      );
      return { channel: info.channel, freq_mhz: info.frequency, bandwidth_mhz: widthOf(info.htmode), peers };
    },
  });
}

const chswitch_beacons = 10;

/** The firmware switches all nodes together; only another switch can undo it. */
function setMeshChannel(parts: CommandParts): Command {
  const { ubus, found, hooks, limits } = parts;
  return defineCommand({
    name: 'set_mesh_channel',
    description: 'Moves all radios of the mesh to another frequency together. There is no automatic rollback',
    risk_level: 'high',
    timeout_ms: limits.mesh_switch_ms + 15_000,
    input: z.strictObject({
      freq_mhz: z.number().min(100).max(7_125),
      bandwidth_mhz: z.number().min(1).max(160),
    }),
    async handle({ freq_mhz, bandwidth_mhz }, context): Promise<JsonObject> {
      const args = {
        count: chswitch_beacons,
        model: found.board.sub_model ?? found.board.model ?? '',
        frequency: freq_mhz,
        bandwidth: bandwidth_mhz,
        mode_change: false,
      };
      hooks.expectAway(texts.changing_mesh, limits.mesh_switch_ms);
      await orderOnce(ubus, { object: 'message-system', method: 'chswitch', args }, context.signal);
      const outcome = await seenAsWanted(changing(parts), {
        wish: { values: {}, what: `${freq_mhz} MHz`, holds: (info) => info.frequency === freq_mhz },
        needs_peer: true,
        until_ms: performance.now() + limits.mesh_switch_ms,
        context,
      });
      if (!outcome.isGood) {
        throw new CommandRefused(texts.mesh_not_rolled_back(outcome.why));
      }
      const { info, peers } = outcome.seen;
      return { freq_mhz: info.frequency, channel: info.channel, peers };
    },
  });
}

function reboot(parts: CommandParts): Command {
  return defineCommand({
    name: 'reboot',
    description: 'Restarts the radio; its links are down for a minute or two',
    risk_level: 'high',
    timeout_ms: parts.limits.reboot_ms + 10_000,
    input: noInput,
    handle: async (_input, context) => rebootRadio(parts, context),
  });
}

// Restarts a radio and waits until it answers with a smaller uptime, as proof.

interface RebootParts {
  readonly ubus: Ubus;
  readonly limits: Limits;
  readonly hooks: Pick<SessionHooks, 'expectAway'>;
}

export async function rebootRadio(
  { ubus, limits, hooks }: RebootParts,
  { signal, progress }: CommandContext,
): Promise<JsonObject> {
  const before_s = await uptime(ubus);
  if (before_s === undefined) throw new CommandRefused(texts.no_uptime);
  const begin_ms = performance.now();
  hooks.expectAway(texts.rebooting, limits.reboot_ms);
  await orderOnce(ubus, { object: 'system', method: 'reboot' }, signal);
  progress(texts.restart_sent);
  while (performance.now() - begin_ms < limits.reboot_ms) {
    await sleep(limits.look_ms, signal);
    if (signal.aborted) throw new CommandRefused(texts.restart_cancelled);
    const now_s = await uptime(ubus).catch(() => undefined);
    if (now_s === undefined || now_s >= before_s) continue;
    return { uptime_s: now_s, away_s: Math.round((performance.now() - begin_ms) / 1_000) };
  }
  throw new CommandRefused(texts.not_restarted(Math.round(limits.reboot_ms / 1_000)));
}

/**
 * Sends a command whose answer may be lost with the link that carries it: a lost answer counts as accepted, and the
 * effect is verified. Throws CommandRefused when the radio rejects it. Never sent twice.
 */
export async function orderOnce(ubus: Ubus, call: Call, signal: AbortSignal): Promise<void> {
  const answer = await ubus.askOne(call, { signal }).catch((error: unknown) => {
    if (error instanceof CommandRefused) throw error;
    return undefined;
  });
  if (answer && answer.kind !== 'ok' && answer.kind !== 'failed') {
    throw new CommandRefused(texts.command_rejected(answerWords(answer)));
  }
}

async function uptime(ubus: Ubus): Promise<number | undefined> {
  const answer = await ubus.askOne({ object: 'system', method: 'info' });
  return answer.kind === 'ok' ? (healthOf(answer.body).uptime_s ?? undefined) : undefined;
}
