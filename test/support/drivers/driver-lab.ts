/** Runs one driver outside a hub and keeps what it says, for drivers that announce no asset of their own. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedSet } from '../../../src/contract/feeds.ts';
import { type KitPart, type KitTelemetry, kitTelemetry } from '../../../src/contract/kit.ts';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { Driver, DriverHost, NewFile } from '../../../src/toolkit/driver/driver.ts';
import { eventually } from '../eventually.ts';
import { recordingLog } from '../recording-log.ts';

/** Starts the driver; `stop` ends it and removes its files. */
export function driverLab(driver: Driver, options: unknown, { state_dir }: { state_dir?: string } = {}) {
  const stopping = new AbortController();
  const log = recordingLog();
  const dir = state_dir ?? mkdtempSync(join(tmpdir(), 'kit-connector-lab-'));
  const kit: KitTelemetry = {};
  const said: KitPart[] = [];
  const shown: {
    commands: readonly Command[];
    facts: Readonly<Record<string, unknown>>;
    /** Files for the cloud. */
    readonly files: NewFile[];
  } = { commands: [], facts: {}, files: [] };
  const host: DriverHost<FeedSet> = {
    signal: stopping.signal,
    log,
    announce: () => {
      throw new Error('this driver has no assets of its own');
    },
    reportKit(part) {
      said.push(part);
      Object.assign(kit, kitTelemetry.parse(part));
    },
    retract: () => undefined,
    reportLink: () => undefined,
    reportLocation: () => undefined,
    serveGateway(commands) {
      shown.commands = commands;
    },
    publishGateway: () => undefined,
    linkType: () => null,
    files: {
      add: async (file) => {
        shown.files.push(file);
        return randomUUID();
      },
    },
    stateFile: (name) => join(dir, name),
    reportStatus(facts) {
      shown.facts = facts;
    },
    onOptions: () => undefined,
  };
  const ended = driver.configure(options)(host);
  ended.catch(() => undefined);
  return {
    log,
    /** The parts of the kit as they were reported last. */
    kit,
    /** Every report, in order. */
    said,
    shown,
    /** Settles with the run. */
    ended,
    abort: () => stopping.abort(),
    /** Resolves once what was reported holds. */
    until: async (what: string, holds: () => boolean) => eventually(what, holds),
    async stop() {
      stopping.abort();
      await ended.catch(() => undefined);
      if (state_dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}
