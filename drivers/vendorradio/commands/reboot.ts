/** Restarts a radio and waits until it answers with a smaller uptime, as proof. */
import type { JsonObject } from '../../../src/contract/json.ts';
import type { CommandContext } from '../../../src/driver/command.ts';
import { CommandRefused } from '../../../src/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { healthOf } from '../ubus/iwinfo.ts';
import type { Limits } from '../limits.ts';
import type { SessionHooks } from '../source.ts';
import type { Ubus } from '../ubus/ubus.ts';
import { answerWords, type Call } from '../ubus/ubus-wire.ts';
import { texts } from '../texts.ts';

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
