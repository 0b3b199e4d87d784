/** Signatures: those of node-mavlink are understood, replays are not, and the clock never goes back. */
import { createHash } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MavLinkPacketSignature, MavLinkProtocolV2, minimal } from 'node-mavlink';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { encode } from '../../../../../drivers/mavlink/wire/messages.ts';
import {
  keyOfPassphrase,
  openSigning,
  signingWith,
  openSigningClock,
  ticks_per_s,
} from '../../../../../drivers/mavlink/wire/signing.ts';
import { DeviceUnreachable } from '../../../../../src/platform/errors.ts';
import { texts as secretTexts } from '../../../../../src/platform/texts.ts';
import { texts } from '../../../../../drivers/mavlink/wire/texts.ts';
import { framesOfDatagram } from '../frames.ts';
import { clockAt } from './signing-lab.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { withDirectory } from '../../../../support/temporary.ts';

const key = keyOfPassphrase('correct horse');
const log = recordingLog();
let over: AbortController;
beforeEach(() => {
  over = new AbortController();
});
afterEach(() => {
  over.abort();
  vi.useRealTimers();
});

const fields = { type: 18, autopilot: 8, base_mode: 0, custom_mode: 0, system_status: 4, mavlink_version: 3 };
function signedBy(signing: ReturnType<typeof signingWith>, link_id = 0): Uint8Array {
  return encode('HEARTBEAT', fields, { sysid: 245, compid: 191, seq: 1, sign: signing.signer(link_id) });
}

it('Signing produces frames that the framer finds and node-mavlink verifies', () => {
  const bytes = signedBy(signingWith(key, clockAt(5_000)), 3);
  expect(framesOfDatagram(bytes).frames).toMatchObject([{ signed: true, sysid: 245 }]);
  const signature = new MavLinkPacketSignature(Buffer.from(bytes));
  expect(signature.matches(Buffer.from(key))).toBe(true);
  expect(signature.linkId).toBe(3);
});

it('Signing verifies a frame signed by node-mavlink exactly once', () => {
  const heartbeat = Object.assign(new minimal.Heartbeat(), {
    type: 2,
    autopilot: 3,
    baseMode: 0,
    customMode: 0,
    systemStatus: 4,
    mavlinkVersion: 3,
  });
  const protocol = new MavLinkProtocolV2(1, 1, MavLinkProtocolV2.IFLAG_SIGNED);
  const bytes = protocol.sign(protocol.serialize(heartbeat, 0), 1, Buffer.from(key), Date.now());
  const signing = signingWith(key, clockAt(0));
  expect([signing.verify(bytes), signing.verify(bytes)]).toEqual(['genuine', 'repeated']);
});

it('Signing rejects another key, a changed byte and a replay', () => {
  const sender = signingWith(key, clockAt(1_000));
  const receiver = signingWith(key, clockAt(0));
  const [first, second] = [signedBy(sender), signedBy(sender)];
  expect(signingWith(keyOfPassphrase('other'), clockAt(0)).verify(first)).toBe('other_key');
  const changed = Uint8Array.from(first);
  changed[12] = (changed[12] ?? 0) ^ 1;
  expect(receiver.verify(changed)).toBe('other_key');
  expect(receiver.verify(second)).toBe('genuine');
  expect(receiver.verify(first)).toBe('repeated');
});

it('Signing accepts reordered frames of one sender over two links', () => {
  const sender = signingWith(key, clockAt(1_000));
  const receiver = signingWith(key, clockAt(0));
  const [early, late] = [signedBy(sender, 0), signedBy(sender, 1)];
  expect([receiver.verify(late), receiver.verify(early)]).toEqual(['genuine', 'genuine']);
});

it('Signing rejects a new stream that is more than a minute old', () => {
  const now = 1_000 * ticks_per_s;
  const receiver = signingWith(key, clockAt(now));
  expect(receiver.verify(signedBy(signingWith(key, clockAt(now - 61 * ticks_per_s)), 1))).toBe('old');
  expect(receiver.verify(signedBy(signingWith(key, clockAt(now - 59 * ticks_per_s)), 2))).toBe('genuine');
});

it('Signing answers a vehicle whose clock is ahead with a later tick', () => {
  const receiver = signingWith(key, clockAt(0));
  expect(receiver.verify(signedBy(signingWith(key, clockAt(70_000_000))))).toBe('genuine');
  const answer = signedBy(receiver);
  expect(Buffer.from(answer).readUIntLE(answer.length - 12, 6)).toBeGreaterThan(70_000_001);
});

it('The signing clock never repeats a tick, within one millisecond or when the time of day goes back', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 11, 1) });
  await withDirectory(async (dir) => {
    const clock = await openSigningClock(join(dir, 'clock'), { signal: over.signal, log });
    const ticks = [clock.next(), clock.next()];
    vi.setSystemTime(Date.UTC(2020, 0, 1));
    ticks.push(clock.next(), clock.next());
    expect(ticks).toEqual(ticks.toSorted((a, b) => a - b));
    expect(new Set(ticks).size).toBe(4);
  });
});

it('The signing clock continues after all used ticks when a restart loses the time of day', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 11, 1) });
  await withDirectory(async (dir) => {
    const file = join(dir, 'clock');
    const used = (await openSigningClock(file, { signal: over.signal, log })).next();
    vi.setSystemTime(0);
    const again = await openSigningClock(file, { signal: over.signal, log });
    expect(again.next()).toBeGreaterThan(used);
    expect(again.next()).toBeLessThan(used + 61 * ticks_per_s);
  });
});

it('The signing clock file stays ahead of the clock while time passes', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now: Date.UTC(2026, 11, 1) });
  await withDirectory(async (dir) => {
    const file = join(dir, 'clock');
    const clock = await openSigningClock(file, { signal: over.signal, log });
    const before = await readFile(file, 'utf8');
    vi.advanceTimersByTime(40_000);
    await vi.waitFor(async () => expect(await readFile(file, 'utf8')).not.toBe(before));
    expect(Number(await readFile(file, 'utf8'))).toBeGreaterThan(clock.next());
  });
});

it('The signing clock logs a damaged or unwritable file once and keeps working', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'clock');
    await writeFile(file, 'rubbish');
    const damaged = recordingLog();
    const clock = await openSigningClock(file, { signal: over.signal, log: damaged });
    expect(damaged.at('warn')).toEqual([texts.clock_damaged]);
    expect(clock.next()).toBeGreaterThan(0);
    const unwritable = recordingLog();
    const other = await openSigningClock(join(file, 'clock'), {
      signal: over.signal,
      log: unwritable,
    });
    expect(unwritable.at('warn')).toEqual([texts.clock_write_failed]);
    expect(other.next()).toBeGreaterThan(0);
  });
});

it('Signing reads a passphrase or the digits of the key, and fails without a key', async () => {
  await withDirectory(async (dir) => {
    const [words, digits] = [join(dir, 'words'), join(dir, 'digits')];
    const needs = { signal: over.signal, log };
    await writeFile(words, 'correct horse\n', { mode: 0o600 });
    await writeFile(digits, createHash('sha256').update('correct horse').digest('hex'), { mode: 0o600 });
    const [a, b] = await Promise.all(
      [words, digits].map(async (key_file) =>
        openSigning({ key_file, clock_file: `${key_file}.clock` }, needs),
      ),
    );
    expect(b?.verify(signedBy(a!))).toBe('genuine');
    const missing = openSigning({ key_file: join(dir, 'none'), clock_file: join(dir, 'c') }, needs);
    await expect(missing).rejects.toThrow(DeviceUnreachable);
    await writeFile(words, '\n');
    const fault = openSigning({ key_file: words, clock_file: join(dir, 'c') }, needs);
    await expect(fault).rejects.toThrow(DeviceUnreachable);
    await expect(fault).rejects.toThrow(secretTexts.file_empty(words));
  });
});

it('Signing rejects a key file that every user of the machine may read, as any secret file', async () => {
  await withDirectory(async (dir) => {
    const key_file = join(dir, 'key');
    await writeFile(key_file, 'correct horse\n');
    await chmod(key_file, 0o644);
    const needs = { signal: over.signal, log };
    const open = async () => openSigning({ key_file, clock_file: join(dir, 'clock') }, needs);
    await expect(open()).rejects.toThrow(secretTexts.world_access(key_file));
    await chmod(key_file, 0o640);
    expect((await open()).verify(signedBy(await open()))).toBe('genuine');
  });
});

/** Opens signing with one key and clock again and again, as the runs of a daemon do. */
async function withRuns(
  play: (
    open: (runLog?: ReturnType<typeof recordingLog>) => ReturnType<typeof openSigning>,
    clock_file: string,
  ) => Promise<void>,
): Promise<void> {
  await withDirectory(async (dir) => {
    const options = { key_file: join(dir, 'key'), clock_file: join(dir, 'clock') };
    await writeFile(options.key_file, 'correct horse', { mode: 0o600 });
    await play(
      async (runLog = log) => openSigning(options, { signal: over.signal, log: runLog }),
      options.clock_file,
    );
  });
}
const ticksNow = (): number => Math.round((Date.now() - Date.UTC(2015, 0)) * (ticks_per_s / 1_000));

it('Signing accepts nothing again after a kill, and what is newer once its sender has received the kit', async () => {
  await withRuns(async (open) => {
    const killed = await open();
    const clock = clockAt(ticksNow());
    const sender = signingWith(key, clock);
    const recorded = signedBy(sender);
    expect(killed.verify(recorded)).toBe('genuine');
    const next = await open();
    expect(next.verify(recorded)).toBe('repeated');
    expect(sender.verify(signedBy(next))).toBe('genuine');
    expect(next.verify(signedBy(sender))).toBe('genuine');
  });
});

it('Signing accepts nothing again after an orderly stop, and what is newer at once', async () => {
  await withRuns(async (open) => {
    const stopped = await open();
    const sender = signingWith(key, clockAt(ticksNow() + ticks_per_s));
    const recorded = signedBy(sender);
    expect(stopped.verify(recorded)).toBe('genuine');
    await stopped.close();
    const next = await open();
    expect([next.verify(recorded), next.verify(signedBy(sender))]).toEqual(['repeated', 'genuine']);
  });
});

it('Signing stores the clock at once when a sender is ahead of what is stored, and names it when it is days ahead', async () => {
  await withRuns(async (open, clock_file) => {
    const warned = recordingLog();
    const killed = await open(warned);
    const sender = signingWith(key, clockAt(ticksNow() + 3 * 86_400 * ticks_per_s));
    const recorded = signedBy(sender);
    expect(killed.verify(recorded)).toBe('genuine');
    expect(killed.verify(signedBy(sender))).toBe('genuine');
    await vi.waitFor(async () =>
      expect(Number(await readFile(clock_file, 'utf8'))).toBeGreaterThan(ticksNow() + 86_400 * ticks_per_s),
    );
    expect(warned.at('warn')).toEqual([texts.clock_ahead]);
    expect(killed.ahead_days()).toBeGreaterThan(1);
    expect((await open()).verify(recorded)).toBe('repeated');
  });
});

it('Signing does not follow a clock that is decades ahead', async () => {
  await withRuns(async (open) => {
    const signing = await open();
    const sender = signingWith(key, clockAt(2 ** 48 - 10));
    expect(signing.verify(signedBy(sender))).toBe('ahead');
    const used = Buffer.from(signedBy(signing)).readUIntLE(signedBy(signing).length - 12, 6);
    expect(used).toBeLessThan(ticksNow() + 60 * ticks_per_s);
  });
});
