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
import type { Found } from '../ubus/identify.ts';
import {
  type Channel,
  channelsOf,
  healthOf,
  type Info,
  infoOf,
  powersOf,
  stationsOf,
  widthOf,
  rowsIn,
} from '../ubus/iwinfo.ts';
import type { Led } from './led.ts';
import { figure, macText, text } from '../ubus/loose.ts';
import type { CommandName, UbusRadio, VendorradioOptions } from '../options.ts';
import { answerWords, type Call, ubus_status } from '../ubus/ubus-wire.ts';
import { texts } from '../texts.ts';
import type { Limits } from '../limits.ts';
import type { SessionHooks } from '../source.ts';
import type { Ubus } from '../ubus/ubus.ts';
import { isHeard } from '../assets/feeds.ts';

interface ChangeParts {
  readonly ubus: Ubus;
  readonly device: string;
  readonly uci_radio: string | undefined;
  readonly rollback_s: number;
  readonly limits: Limits;
  readonly hooks: Pick<SessionHooks, 'expectAway'>;
}

interface Wish {
  /** Of the wifi-device section; null deletes the option. */
  readonly values: Readonly<Record<string, string | null>>;
  /** The requested setting, for the operator. */
  readonly what: string;
  readonly holds: (info: Info) => boolean;
}

interface Seen {
  readonly info: Info;
  readonly peers: number;
}

/**
 * Changes a setting of plain OpenWrt's Wi-Fi so that it cannot cut the kit off: applied with rollback, confirmed only
 * when the radio answered with the new setting and with a peer. Resolves once it is confirmed; throws CommandRefused, after
 * which the old setting is in effect or returns at the timeout.
 */
async function applySafely(parts: ChangeParts, wish: Wish, context: CommandContext): Promise<Seen> {
  const { ubus, rollback_s, hooks, limits } = parts;
  const before = await look(parts);
  if (!before) throw new CommandRefused(texts.silent_unchanged);
  const section = await sectionOf(parts);
  await stage(parts, section, wish, context.signal);
  const losses = ubus.losses;
  const applied = await ubus.askOne({
    object: 'uci',
    method: 'apply',
    args: { rollback: true, timeout: rollback_s },
  });
  if (applied.kind !== 'ok') {
    await ubus.askOne(revertCall).catch(() => undefined);
    const other = applied.kind === 'status' && applied.code === ubus_status.permission_denied;
    throw new CommandRefused(other ? texts.unconfirmed_change : texts.change_rejected(answerWords(applied)));
  }
  // Staged changes belong to a session and are lost with it: an apply in a new one applies nothing.
  if (ubus.losses > losses) throw await rolledBack(parts, texts.restarted_before, before);
  const until_ms = performance.now() + rollback_s * 1_000 - limits.confirm_margin_ms;
  hooks.expectAway(texts.changing_settings, rollback_s * 1_000 + limits.revert_ms);
  context.progress(texts.waiting_with(wish.what));
  const seen = await seenAsWanted(parts, { wish, needs_peer: before.peers > 0, until_ms, context });
  if (!seen.isGood) throw await rolledBack(parts, seen.why, before);
  const confirmed = await ubus.askOne({ object: 'uci', method: 'confirm' }).catch(() => undefined);
  if (confirmed?.kind !== 'ok') throw await rolledBack(parts, texts.confirmed_late, before);
  return seen.seen;
}

const revertCall: Call = { object: 'uci', method: 'revert', args: { config: 'wireless' } };

async function stage(
  { ubus }: ChangeParts,
  section: string,
  { values }: Wish,
  signal: AbortSignal,
): Promise<void> {
  const set = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
  const gone = Object.keys(values).filter((option) => values[option] === null);
  const place = { config: 'wireless', section };
  const calls: Call[] = [
    ...(Object.keys(set).length > 0
      ? [{ object: 'uci', method: 'set', args: { ...place, values: set } }]
      : []),
    ...gone.map((option) => ({ object: 'uci', method: 'delete', args: { ...place, option } })),
  ];
  const answers = await ubus.ask(calls, { signal });
  const isFine = answers.every(({ kind }, index) => kind === 'ok' || calls[index]?.method === 'delete');
  const bad = answers.find(({ kind }) => kind !== 'ok');
  if (!isFine && bad) {
    await ubus.askOne(revertCall).catch(() => undefined);
    throw new CommandRefused(texts.change_rejected_unchanged(answerWords(bad)));
  }
}

/** Reads the current state of the radio; undefined when it is offline. */
async function look({ ubus, device, limits }: ChangeParts): Promise<Seen | undefined> {
  const args = { device };
  const answers = await ubus
    .ask([
      { object: 'iwinfo', method: 'info', args },
      { object: 'iwinfo', method: 'assoclist', args },
    ])
    .catch(() => undefined);
  const [about, listed] = answers ?? [];
  const info = about?.kind === 'ok' ? infoOf(about.body) : undefined;
  if (!info) return undefined;
  const stations = listed?.kind === 'ok' ? (stationsOf(listed.body) ?? []) : [];
  // A station received before the change is listed for minutes: it counts only if received since the last check.
  const fresh_ms = Math.min(limits.peer_lost_ms, limits.look_ms * 2);
  return { info, peers: stations.filter((station) => isHeard(station, fresh_ms)).length };
}

interface Wanted {
  readonly wish: Wish;
  readonly needs_peer: boolean;
  /** Monotonic. */
  readonly until_ms: number;
  readonly context: CommandContext;
}

type Outcome =
  | { readonly isGood: true; readonly seen: Seen }
  | { readonly isGood: false; readonly why: string };

async function seenAsWanted(parts: ChangeParts, awaited: Wanted): Promise<Outcome> {
  const { wish, needs_peer, until_ms, context } = awaited;
  let why: string = texts.silent_after;
  while (performance.now() < until_ms) {
    await sleep(parts.limits.look_ms, context.signal);
    if (context.signal.aborted) return { isGood: false, why: texts.stopped_unconfirmed };
    const seen = await look(parts);
    if (!seen) continue;
    if (!wish.holds(seen.info)) why = texts.answered_without(wish.what);
    else if (needs_peer && seen.peers === 0) why = texts.no_peer_after;
    else return { isGood: true, seen };
  }
  return { isGood: false, why };
}

/** Waits until the old setting is in effect, so that the report states the actual setting. */
async function rolledBack(parts: ChangeParts, why: string, before: Seen): Promise<CommandRefused> {
  const { ubus, rollback_s, limits } = parts;
  const never = new AbortController().signal;
  // Earlier than the radio's own timeout, if it is reachable and permits it.
  const call = { object: 'uci', method: 'rollback' };
  if (ubus.grants?.mayCall(call)) await ubus.askOne(call).catch(() => undefined);
  const until_ms = performance.now() + rollback_s * 1_000 + limits.revert_ms;
  while (performance.now() < until_ms) {
    const seen = await look(parts);
    const { frequency, channel, txpower } = before.info;
    if (seen && seen.info.frequency === frequency && seen.info.txpower === txpower) {
      return new CommandRefused(texts.rolled_back(why, channel ?? '?', txpower ?? '?'));
    }
    await sleep(limits.look_ms, never);
  }
  return new CommandRefused(texts.rollback_unseen(why));
}

const wireless = z.looseObject({
  values: z.record(
    z.string(),
    z.looseObject({
      '.type': z.string().optional(),
      device: z.string().optional(),
      ifname: z.string().optional(),
    }),
  ),
});

/** Finds the wifi-device section of the interface. The configuration contains keys, and is discarded after reading. */
async function sectionOf({ ubus, device, uci_radio }: ChangeParts): Promise<string> {
  const answer = await ubus.askOne({ object: 'uci', method: 'get', args: { config: 'wireless' } });
  if (answer.kind !== 'ok') throw new CommandRefused(texts.settings_unreadable(answerWords(answer)));
  const read = wireless.safeParse(answer.body);
  if (!read.success) throw new CommandRefused(texts.settings_unknown);
  const sections = Object.entries(read.data.values);
  const radios = sections.filter(([, section]) => section['.type'] === 'wifi-device').map(([name]) => name);
  const own = sections.find(([, section]) => section['.type'] === 'wifi-iface' && section.ifname === device);
  const name = uci_radio ?? own?.[1].device ?? (radios.length === 1 ? radios[0] : undefined);
  if (name !== undefined && radios.includes(name)) return name;
  throw new CommandRefused(
    name === undefined ? texts.several_sections(radios.join(', '), device) : texts.no_section(name),
  );
}

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
      const rows = rowsIn(found_network, answer.body);
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
