/** What the driver asks others for: probers that follow the interfaces, public addresses, and the file of the links. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/links/texts.ts';
import { forget_after_ms, Memory, save_every_ms } from '../../../../drivers/links/usage/memory.ts';
import type { ProberSpec } from '../../../../drivers/links/probe/prober.ts';
import { Probing } from '../../../../drivers/links/probing.ts';
import { PublicAddresses } from '../../../../drivers/links/probe/public-addresses.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { withDirectory } from '../../../support/temporary.ts';

const { signal } = new AbortController();
const nothing = (): void => undefined;

describe('probers', () => {
  it('exist once for each link, and restart when the interface or its pace changes', () => {
    const started: ProberSpec[] = [];
    const probing = new Probing({
      start: (spec) => {
        started.push(spec);
        const reading = {
          reachable: true,
          since_ms: null,
          silent_ms: null,
          latency_ms: spec.ifindex,
          jitter_ms: null,
          packet_loss_pct: 0,
        };
        const rest = { method: 'icmp', reason: null, decided_by: 'probes', note: null } as const;
        return { read: () => ({ ...reading, ...rest }) };
      },
      hasTargets: true,
      hasChecks: false,
      startChecker: () => {
        throw new Error('there is nothing to check');
      },
      tcp: true,
      timeout_ms: 1_000,
      check_timeout_ms: 1_000,
      signal,
      log: recordingLog(),
      onChange: nothing,
    });
    const asked = { targets: [{ ip: '192.0.2.1', port: 443 }], checks: [], families: [4] } as const;
    const sat = { name: 'sat0', ifindex: 3, asked, interval_ms: 2_000, check_interval_ms: 60_000 };
    const cell = { ...sat, name: 'wwan0', ifindex: 4, interval_ms: 10_000 };
    probing.follow([sat, cell]);
    probing.follow([sat, cell]);
    expect(started.map(({ device }) => device)).toEqual(['sat0', 'wwan0']);
    // An address of the other family came or went.
    const now = [{ ip: '2001:db8::1', port: 443 }];
    probing.follow([{ ...sat, asked: { ...asked, targets: now, families: [6] } }, cell]);
    expect(started.map(({ targets }) => targets())).toEqual([now, asked.targets]);
    probing.follow([sat, { ...cell, ifindex: 9 }]);
    expect(started.map((spec) => spec.signal.aborted)).toEqual([false, true, false]);
    expect(probing.read('wwan0')?.latency_ms).toBe(9);
    probing.follow([sat]);
    expect(started.map((spec) => spec.signal.aborted)).toEqual([false, true, true]);
    expect(probing.read('wwan0')).toBeNull();
  });
});

describe('public addresses', () => {
  const link = { name: 'sat0', ifindex: 3, addresses: ['100.64.0.2'] };
  const asked = (answers: (string | null | Error)[]) => {
    const spec = {
      asked: 0,
      answered: 0,
      servers: [{ ip: '192.0.2.1', port: 3_478 }],
      refresh_ms: 600_000,
      signal,
      ask: async () => {
        spec.asked += 1;
        const answer = answers.shift() ?? null;
        if (answer instanceof Error) throw answer;
        return answer;
      },
      onChange: () => void (spec.answered += 1),
    };
    return { spec, addresses: new PublicAddresses(spec) };
  };

  it('are requested once, and again after a change of address or after the interval', async () => {
    const { spec, addresses } = asked(['8.8.4.4', '8.8.8.8', '9.9.9.9']);
    expect(addresses.of(link, performance.now())).toBeNull();
    await eventually('an answer', () => spec.answered === 1);
    expect(addresses.of(link, performance.now())).toBe('8.8.4.4');
    const moved = { ...link, addresses: ['100.64.0.9'] };
    expect(addresses.of(moved, performance.now())).toBeNull();
    await eventually('another answer', () => spec.answered === 2);
    expect(addresses.of(moved, performance.now())).toBe('8.8.8.8');
    expect(addresses.of(moved, performance.now() + spec.refresh_ms)).toBe('8.8.8.8');
    await eventually('a fresh answer', () => spec.answered === 3);
    expect([addresses.of(moved, performance.now()), spec.asked]).toEqual(['9.9.9.9', 3]);
  });

  it('are unknown without an answer, and not requested again immediately', async () => {
    const { spec, addresses } = asked([new Error('no route'), null]);
    addresses.of(link, performance.now());
    await eventually('a failure', () => spec.answered === 1);
    expect(addresses.of(link, performance.now())).toBeNull();
    expect(spec.asked).toBe(1);
    addresses.of(link, performance.now() + 31_000);
    expect(spec.asked).toBe(2);
  });

  it('are not requested without a configured server', () => {
    const { spec } = asked(['8.8.4.4']);
    const silent = new PublicAddresses({ ...spec, servers: [] });
    expect([silent.of(link, 0), spec.asked]).toEqual([null, 0]);
  });
});

describe('the file of the links', () => {
  const day_ms = 24 * 3_600_000;
  const now_ms = Date.UTC(2026, 11, 1);

  it('is written with the first reading of a new kit, then at most once a minute', async () => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'links.json');
      const memory = new Memory(file, recordingLog(), 0);
      const kept = async (): Promise<number> =>
        readFile(file, 'utf8').then(
          (text) => (text.includes('"eth0"') ? 1 : 0) + (text.includes('"eth1"') ? 1 : 0),
          () => 0,
        );
      memory.update('eth0', 'ethernet', { seen_ms: now_ms });
      memory.saveSometimes(0);
      await eventually('the first', async () => (await kept()) === 1);
      memory.update('eth1', 'ethernet', { seen_ms: now_ms });
      memory.saveSometimes(save_every_ms - 1);
      expect(await kept()).toBe(1);
      memory.saveSometimes(save_every_ms);
      await eventually('both', async () => (await kept()) === 2);
      expect(new Memory(file, recordingLog(), 0).names()).toEqual(['eth0', 'eth1']);
      const next = new Memory(file, recordingLog(), 0);
      next.update('eth2', 'ethernet', { seen_ms: now_ms });
      next.saveSometimes(save_every_ms - 1);
      expect(new Memory(file, recordingLog(), 0).names()).toHaveLength(2);
    });
  });

  it('forgets a link after a month, but not because the clock was not set', async () => {
    await withDirectory(async (dir) => {
      const memory = new Memory(join(dir, 'links.json'), recordingLog(), 0);
      memory.update('stick', 'cellular', { seen_ms: now_ms - forget_after_ms - 1 });
      memory.update('port', 'ethernet', { seen_ms: now_ms - day_ms });
      memory.update('early', 'ethernet', { seen_ms: null });
      const all = new Set(['stick', 'port', 'early']);
      expect(memory.newestFirst()).toEqual(['early', 'port', 'stick']);
      memory.prune(all, new Set(), null);
      expect(memory.names()).toHaveLength(3);
      memory.prune(all, new Set(), now_ms);
      expect([...memory.names()].sort()).toEqual(['early', 'port']);
      memory.prune(all, new Set(['port']), now_ms + forget_after_ms + 1);
      expect(memory.names()).toEqual(['port']);
    });
  });

  it('logs once that it cannot be written, continues in memory, and logs the recovery', async () => {
    await withDirectory(async (dir) => {
      const log = recordingLog();
      const away = join(dir, 'away');
      const memory = new Memory(join(away, 'links.json'), log, 0);
      await writeFile(away, 'no folder');
      memory.update('eth0', 'ethernet', {});
      await memory.save();
      await memory.save();
      expect(log.at('warn')).toEqual([texts.usage_not_saved]);
      await rm(away);
      await memory.save();
      expect(log.at('info')).toEqual([texts.usage_saved]);
      expect(new Memory(join(away, 'links.json'), log, 0).names()).toEqual(['eth0']);
    });
  });
});
