/** Plays a story to its end and says what was wrong. */
import { real, inhabit } from './world/globals.ts';
import type { Outbox } from '../../src/kit/outbox/live/outbox.ts';
import { checkEnd } from './checks/check.ts';
import { faults, heal } from './faults/faults.ts';
import { watchOutboxes } from './world/kit.ts';
import { Sampler } from './checks/sampler.ts';
import { Scene } from './scene.ts';
import { client_id } from './world/service.ts';
import type { Story } from './story.ts';

/** After the last fault everything must be delivered within this time. */
const delivered_within_ms = 360_000;
/** Quiet for so long: drops are told every ten seconds. */
const quiet_ms = 24_000;
const look_every_ms = 1_000;
const still_busy_ms = 3_000;

export interface Played {
  readonly violations: readonly string[];
  readonly events: number;
  readonly virtual_ms: number;
  readonly real_ms: number;
  /** Of the trace: the same for the same story on the same code. */
  readonly hash: string;
  readonly trace: string;
  readonly messages: number;
}

type Meddle = (scene: Scene) => void;
const nothing: Meddle = () => undefined;

/** For tests that expect a check to fail: `spoil` is called before the last check, `prepare` at the beginning. */
export async function play(story: Story, spoil = nothing, prepare = nothing): Promise<Played> {
  const from_ms = real.now_ms();
  const scene = new Scene(story.seed, story.setting);
  const crashed = (error: unknown): void => scene.world.onCrash(scene.world.current, error);
  process.on('unhandledRejection', crashed);
  process.on('uncaughtException', crashed);
  inhabit(scene.world);
  watchOutboxes(scene.kit);
  try {
    prepare(scene);
    await perform(scene, story);
    spoil(scene);
    await checkEnd(scene);
    return {
      violations: scene.violations,
      events: scene.world.events,
      virtual_ms: scene.world.now_ms,
      real_ms: real.now_ms() - from_ms,
      hash: scene.trace.hash,
      trace: scene.trace.text(),
      messages: scene.witness.taken.size,
    };
  } finally {
    watchOutboxes(undefined);
    inhabit(undefined);
    scene.close();
    await real.turn();
    process.off('unhandledRejection', crashed);
    process.off('uncaughtException', crashed);
  }
}

async function perform(scene: Scene, { setting, actions }: Story): Promise<void> {
  const { world } = scene;
  scene.note('story', 'begins', setting);
  scene.disturb(0);
  scene.later(0, () => scene.service.start());
  scene.later(0, () => scene.kit.start());
  for (const action of actions) {
    scene.later(action.at_ms, () => {
      const { kind, at_ms: _, ...how } = action;
      scene.note('FAULT', kind, how);
      faults[kind].apply(scene, how);
    });
  }
  const sampler = new Sampler(scene);
  while (world.now_ms < setting.duration_ms) {
    await world.run(Math.min(setting.duration_ms, world.now_ms + look_every_ms));
    sampler.look();
  }
  scene.later(0, () => {
    scene.note('story', 'the faults are over');
    scene.disturb(30_000);
    heal(scene);
  });
  scene.later(still_busy_ms, () => (scene.devices.quiet = true));
  await untilQuiet(scene, sampler);
}

async function untilQuiet(scene: Scene, sampler: Sampler): Promise<void> {
  const { world } = scene;
  const end_ms = world.now_ms + delivered_within_ms;
  let quiet_from_ms = Number.POSITIVE_INFINITY;
  await world.run(world.now_ms + 2 * still_busy_ms);
  while (world.now_ms < end_ms) {
    await world.run(world.now_ms + look_every_ms);
    sampler.look();
    const busy = whatIsLeft(scene);
    if (busy) quiet_from_ms = Number.POSITIVE_INFINITY;
    else quiet_from_ms = Math.min(quiet_from_ms, world.now_ms);
    if (world.now_ms - quiet_from_ms >= quiet_ms) return;
    if (Math.round(world.now_ms / look_every_ms) % 10 === 0) retryRefused(scene);
  }
  const left = whatIsLeft(scene);
  if (left) scene.violation(`${delivered_within_ms / 1_000} s after the last fault: ${left}`);
}

/** Whoever looks after the kit sends again what the broker had refused. */
function retryRefused({ kit }: Scene): void {
  if ((kit.run?.outbox?.ledger().quarantined ?? 0) === 0) return;
  kit.within(({ app }) => void app.local.retryQuarantined(undefined).catch(() => undefined));
}

function whatIsLeft(scene: Scene): string | undefined {
  const { kit, devices } = scene;
  const at_kit = leftAtKit(scene);
  if (at_kit) return at_kit;
  const at_broker = leftAtBroker(scene);
  if (at_broker) return at_broker;
  const is_moving = devices.runs.some((run) => run.kit === kit.run?.proc.name && !run.ended);
  return is_moving ? 'a device still moves' : undefined;
}

function leftAtKit({ kit, kit_id, broker }: Scene): string | undefined {
  const outbox = kit.run?.outbox;
  if (!kit.isUp || !outbox) return 'the kit does not run';
  const { buffered, quarantined } = outbox.ledger();
  if (!broker.isConnected(kit_id)) return `the kit is not connected, ${buffered} messages are left`;
  if (buffered > 0) return `the kit still has ${buffered} messages (${lanesOf(outbox)})`;
  return quarantined > 0 ? `the kit still has ${quarantined} messages in quarantine` : undefined;
}

function lanesOf(outbox: Outbox): string {
  const filled = [...outbox.depth()].filter(([, { rows, memory_rows }]) => rows + memory_rows > 0);
  return filled
    .map(([lane, { rows, memory_rows }]) => `${lane}: ${rows} on disk, ${memory_rows} in memory`)
    .join('; ');
}

function leftAtBroker({ service, broker }: Scene): string | undefined {
  if (!service.run?.running || !broker.isConnected(client_id)) return 'the service is not connected';
  const waiting = broker.session(client_id)?.held.length ?? 0;
  return waiting > 0 ? `the broker still has ${waiting} messages for the service` : undefined;
}
