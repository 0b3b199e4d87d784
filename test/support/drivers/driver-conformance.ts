/**
 * What every driver must do, whatever its devices: call `driverConformance` inside a `describe`. The device is played by
 * a scriptable peer. A part that cannot apply to a driver is left out by name, with the reason.
 */
import { randomUUID } from 'node:crypto';
import { Ajv } from 'ajv';
import { jsonValue, sample } from 'fast-check';
import { getEventListeners } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { Driver, DriverHost } from '../../../src/toolkit/driver/driver.ts';
import type { FeedSet } from '../../../src/contract/feeds.ts';
import type { Draft } from '../../../src/kit/outbox/api.ts';
import { isReadable } from '../../../src/cloud/api/payload.ts';
import type { Hub } from '../../../src/kit/hub/hub.ts';
import { every, within } from '../../../src/platform/time.ts';
import { hubLab } from '../kit/hub-lab.ts';
import { recordingLog } from '../recording-log.ts';

/** A device that the test holds in its hands. All of it may be called again after `stop`. */
interface Peer {
  /** The device is there and answers. */
  start(): Promise<void>;
  /** It answers no more. */
  lose(): Promise<void>;
  /** It answers again. */
  restore(): Promise<void>;
  /** Everything that the peer opened is closed. */
  stop(): Promise<void>;
}

export interface Conformance {
  readonly driver: Driver;
  /** Options that reach the peer; read when the peer has started once. */
  readonly options: () => Readonly<Record<string, unknown>>;
  readonly peer: Peer;
  /** Time within which the driver must notice a lost or restored device. */
  readonly notice_ms?: number;
  /** Parts that do not apply, with the reason. */
  readonly without?: { readonly [part in 'loss' | 'commands']?: string };
}

const stop_deadline_ms = 3_000;
const answer_deadline_ms = 30_000;
/** How long a driver that says nothing is listened to, before it counts as silent. */
const silence_ms = 300;
const payload_samples = 100;

export function driverConformance({
  driver,
  options,
  peer,
  notice_ms = 30_000,
  without = {},
}: Conformance): void {
  afterEach(async () => peer.stop());

  const isStatus = (status: string) => (draft: Draft) =>
    draft.channel.endsWith('/asset_status') && draft.data?.['status'] === status;

  /** Runs the driver in a real hub against the peer as it is now. */
  const startHub = () => {
    const lab = hubLab({ configured: ['conformance'], rates: { default: 1_000_000 } });
    void lab.run(driver, 'conformance', { options: options() });
    return lab;
  };

  it('refuses an unknown option and names it', () => {
    expect(() => driver.configure({ ...options(), no_such_option: 1 })).toThrow(/no_such_option/u);
  });

  it('announces an asset only after its device has answered', async ({ skip }) => {
    skip(without.loss !== undefined, without.loss);
    await peer.start();
    await peer.lose();
    const lab = startHub();
    try {
      await triedInVain(lab.hub);
      expect(lab.hub.assets()).toEqual([]);
      await peer.restore();
      await lab.outbox.until(isStatus('online'), notice_ms);
    } finally {
      await lab.stop();
    }
  });

  it('reports a lost device offline once, and online again', async ({ skip }) => {
    skip(without.loss !== undefined, without.loss);
    await peer.start();
    const lab = startHub();
    try {
      await lab.outbox.until(isStatus('online'), answer_deadline_ms);
      await peer.lose();
      await lab.outbox.until(isStatus('offline'), notice_ms);
      const lost = lab.outbox.drafts.filter(isStatus('offline'));
      expect(new Set(lost.map((draft) => draft.channel)).size).toBe(lost.length);
      lab.outbox.clear();
      await peer.restore();
      await lab.outbox.until(isStatus('online'), notice_ms);
    } finally {
      await lab.stop();
    }
  });

  it('publishes only messages that satisfy the schemas of its feeds', async () => {
    await peer.start();
    const recorded = await run(driver, options());
    await recorded.stop();
    expect(recorded.invalid).toEqual([]);
  });

  it('refuses a bad payload of each command', async ({ skip }) => {
    skip(without.commands !== undefined, without.commands);
    await peer.start();
    const recorded = await run(driver, options());
    try {
      expect(recorded.commands.length).toBeGreaterThan(0);
      for (const command of recorded.commands) refusesBadPayloads(command);
    } finally {
      await recorded.stop();
    }
  });

  it('publishes schemas of its commands that the service checks payloads against', async ({ skip }) => {
    skip(without.commands !== undefined, without.commands);
    await peer.start();
    const recorded = await run(driver, options());
    await recorded.stop();
    const unread = recorded.commands.filter(({ input_schema }) => !isReadable(input_schema));
    expect(unread.map(({ name }) => name)).toEqual([]);
  });

  it('ends within 3 s of the abort and leaves nothing open', async () => {
    await peer.start();
    // The first run loads modules and lets libraries open what they keep for good.
    await (await run(driver, options())).stop();
    const before = resources();
    // Three, so that what one run leaves behind shows even if something else has ended meanwhile.
    for (let count = 0; count < 3; count += 1) {
      const recorded = await run(driver, options());
      await recorded.stop();
      expect(getEventListeners(recorded.signal, 'abort')).toEqual([]);
      expect(recorded.halfWritten()).toEqual([]);
    }
    expect(await leftOver(before)).toEqual([]);
  });

  it('ends at once when it is stopped before it was ready', async () => {
    await peer.start();
    const stopping = new AbortController();
    const { host } = recordingHost(driver, stopping.signal);
    const running = driver.configure(options())(host);
    stopping.abort();
    expect(await ended(running)).toBe('ended');
  });
}

/** One run with a host that checks what the driver says; resolves when the driver has announced or reported something. */
async function run(driver: Driver, options: unknown) {
  const stopping = new AbortController();
  const recorded = recordingHost(driver, stopping.signal);
  const running = driver.configure(options)(recorded.host);
  await within(answer_deadline_ms, Promise.race([recorded.heard, running]));
  return {
    ...recorded,
    signal: stopping.signal,
    async stop() {
      stopping.abort();
      expect(await ended(running)).toBe('ended');
    },
  };
}

async function ended(running: Promise<void>): Promise<string> {
  const settled = running.then(() => 'ended');
  return (
    (await within(stop_deadline_ms, settled)) ??
    `\`run\` had not resolved ${stop_deadline_ms} ms after the abort`
  );
}

function recordingHost(driver: Driver, signal: AbortSignal) {
  const commands: Command[] = [];
  const state_dir = mkdtempSync(join(tmpdir(), 'kit-connector-'));
  const invalid: unknown[] = [];
  let tell: () => void = () => undefined;
  const heard = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const host: DriverHost<FeedSet> = {
    signal,
    log: recordingLog(),
    announce(_asset, more_commands = []) {
      commands.push(...more_commands);
      tell();
      return {
        publish(feed, message) {
          const error = driver.feeds[feed]?.safeParse(message).error;
          if (error || !(feed in driver.feeds)) invalid.push({ feed, message, error });
        },
        setPosition: () => undefined,
        setOnline: () => undefined,
        setHealth: () => undefined,
        remove: () => undefined,
      };
    },
    reportKit: () => tell(),
    reportLink: () => tell(),
    reportLocation: () => tell(),
    serveGateway: (more_commands) => void commands.push(...more_commands),
    publishGateway: () => undefined,
    linkType: () => null,
    files: { add: async () => randomUUID() },
    stateFile: (name) => join(state_dir, name),
    retract: () => undefined,
    reportStatus: () => undefined,
    onOptions: () => undefined,
  };
  /** Files of a state that is still being written: each stands beside its file until it is complete. */
  const halfWritten = () => readdirSync(state_dir).filter((name) => /\.[0-9a-f-]{36}$/u.test(name));
  return { host, commands, invalid, heard, halfWritten };
}

/** ajv decides what is bad by the schema that the cloud is told: an independent witness of the command's own. */
function refusesBadPayloads(command: Command): void {
  const isGood = new Ajv({ strict: false }).compile(command.input_schema);
  const takesNothing = Object.keys(command.input_schema).length === 0;
  const samples: unknown[] = [{ bad: 1 }, [], 'text', 7, ...sample(jsonValue(), payload_samples)];
  const bad = samples.filter(
    (payload) => payload !== null && (takesNothing ? !isEmpty(payload) : !isGood(payload)),
  );
  expect(bad.length).toBeGreaterThan(0);
  for (const payload of bad) {
    expect(() => command.read(payload), `${command.name} ${JSON.stringify(payload)}`).toThrow(z.ZodError);
  }
}

/** Resolves once the hub saw the driver fail, or when the driver has waited for its device for a while. */
async function triedInVain(hub: Hub): Promise<void> {
  const giveUp = new AbortController();
  const down = new Promise<void>((resolve) => {
    every(10, giveUp.signal, () => {
      if (hub.drivers()[0]?.state === 'down') resolve();
    });
  });
  await within(silence_ms, down);
  giveUp.abort();
}

function isEmpty(payload: unknown): boolean {
  return typeof payload === 'object' && !Array.isArray(payload) && Object.keys(payload ?? {}).length === 0;
}

function resources(): ReadonlyMap<string, number> {
  const names = process.getActiveResourcesInfo();
  return new Map(names.map((name) => [name, names.filter((each) => each === name).length]));
}

/** What is more than before and does not go within the deadline. Polls without a timer, which would be counted. */
async function leftOver(before: ReadonlyMap<string, number>): Promise<readonly string[]> {
  const deadline_ms = performance.now() + stop_deadline_ms;
  for (;;) {
    const left = more(before, resources());
    if (left.length === 0 || performance.now() > deadline_ms) return left;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Kinds of which there are more than before. */
function more(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): string[] {
  return [...now].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name);
}
