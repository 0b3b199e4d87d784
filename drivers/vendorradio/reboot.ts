/** Restarts a radio and waits until it is back, with an uptime that proves it. */
import type { JsonObject } from '../../src/contract/json.ts';
import type { CommandContext } from '../../src/driver/command.ts';
import { CommandRefused } from '../../src/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { healthOf } from './iwinfo.ts';
import type { Limits } from './limits.ts';
import type { KeeperHooks } from './source.ts';
import type { Ubus } from './ubus.ts';
import { answerWords, type Call } from './ubus-wire.ts';

interface RebootParts {
  readonly ubus: Ubus;
  readonly limits: Limits;
  readonly hooks: Pick<KeeperHooks, 'expectAway'>;
}

export async function rebootRadio(
  { ubus, limits, hooks }: RebootParts,
  { signal, progress }: CommandContext,
): Promise<JsonObject> {
  const before_s = await uptime(ubus);
  if (before_s === undefined)
    throw new CommandRefused('the radio does not tell its uptime, so that its restart could not be seen');
  const begin_ms = performance.now();
  hooks.expectAway('restarts as it was told', limits.reboot_ms);
  await orderOnce(ubus, { object: 'system', method: 'reboot' }, signal);
  progress('told to restart');
  while (performance.now() - begin_ms < limits.reboot_ms) {
    await sleep(limits.look_ms, signal);
    if (signal.aborted) throw new CommandRefused('no longer waited for; the radio was told to restart');
    const now_s = await uptime(ubus).catch(() => undefined);
    if (now_s === undefined || now_s >= before_s) continue;
    return { uptime_s: now_s, away_s: Math.round((performance.now() - begin_ms) / 1_000) };
  }
  throw new CommandRefused(
    `the radio took the order, but was not seen restarted within ${Math.round(limits.reboot_ms / 1_000)} s`,
  );
}

/**
 * Gives an order whose answer may be lost with the network it comes over: a lost answer counts as taken, and the effect
 * is looked for. Throws CommandRefused when the radio says no. Never given twice.
 */
export async function orderOnce(ubus: Ubus, call: Call, signal: AbortSignal): Promise<void> {
  const answer = await ubus.askOne(call, { signal }).catch((error: unknown) => {
    if (error instanceof CommandRefused) throw error;
    return undefined;
  });
  if (answer && answer.kind !== 'ok' && answer.kind !== 'failed') {
    throw new CommandRefused(`the radio refuses the order: ${answerWords(answer)}`);
  }
}

async function uptime(ubus: Ubus): Promise<number | undefined> {
  const answer = await ubus.askOne({ object: 'system', method: 'info' });
  return answer.kind === 'ok' ? (healthOf(answer.body).uptime_s ?? undefined) : undefined;
}
