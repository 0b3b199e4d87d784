/**
 * Changes a setting of plain OpenWrt's Wi-Fi so that it cannot cut the kit off: applied with rollback, confirmed only
 * when the radio answered with the new setting and with a peer; otherwise the radio reverts after the timeout.
 */
import { z } from 'zod';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { type Info, infoOf, stationsOf } from '../ubus/iwinfo.ts';
import { isHeard } from '../assets/feeds.ts';
import type { Limits } from '../limits.ts';
import type { SessionHooks } from '../source.ts';
import type { Ubus } from '../ubus/ubus.ts';
import { answerWords, type Call, ubus_status } from '../ubus/ubus-wire.ts';
import { texts } from '../texts.ts';

export interface ChangeParts {
  readonly ubus: Ubus;
  readonly device: string;
  readonly uci_radio: string | undefined;
  readonly rollback_s: number;
  readonly limits: Limits;
  readonly hooks: Pick<SessionHooks, 'expectAway'>;
}

export interface Wish {
  /** Of the wifi-device section; null deletes the option. */
  readonly values: Readonly<Record<string, string | null>>;
  /** The requested setting, for the operator. */
  readonly what: string;
  readonly holds: (info: Info) => boolean;
}

export interface Seen {
  readonly info: Info;
  readonly peers: number;
}

/** Resolves once the change is confirmed; throws CommandRefused, after which the old setting is in effect or returns at the timeout. */
export async function applySafely(parts: ChangeParts, wish: Wish, context: CommandContext): Promise<Seen> {
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

export async function seenAsWanted(parts: ChangeParts, awaited: Wanted): Promise<Outcome> {
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
