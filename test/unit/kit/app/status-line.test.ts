/** The line of `systemctl status`: every fault that `kit-connector status` shows stands in it, as systemd receives it. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { degradedReasons, type DegradedFacts } from '../../../../src/kit/app/degraded.ts';
import type { ReportParts } from '../../../../src/kit/app/status-report.ts';
import { texts } from '../../../../src/kit/app/texts.ts';
import { vitals } from '../../../../src/kit/app/vitals.ts';
import { no_broker } from '../../../../src/kit/config/broker.ts';
import { codeInWords } from '../../../../src/mqtt/codes.ts';
import { plainFault } from '../../../../src/mqtt/faults.ts';
import { type Notifier, openNotifier } from '../../../../src/platform/systemd/notify.ts';
import { fakeSystemd, type FakeSystemd } from '../../../fakes/services/fake-systemd.ts';
import { a_device, a_driver, troubles, well } from '../../../support/kit/troubles.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const facts = `${texts.line_assets(1)}, ${texts.line_waiting(3)}`;
const connected = `${texts.line_connected('broker.example.com')}, ${facts}`;
const shown_chars = 160;

const end = new AbortController();
let systemd: FakeSystemd;
let notifier: Notifier;

beforeAll(async () => {
  systemd = await fakeSystemd(join(await makeDirectory(), 'notify'));
  notifier = await openNotifier({ NOTIFY_SOCKET: systemd.path }, { pid: process.pid, signal: end.signal });
});
afterAll(() => {
  end.abort();
  systemd.leave();
});

interface Around extends Partial<DegradedFacts> {
  readonly last_error?: string;
  readonly url?: string;
}

function partsOf({ last_error, url = 'mqtts://broker.example.com:8883', ...trouble }: Around): ReportParts {
  const known = { ...well, ...trouble };
  return {
    config: { broker: { url }, warnings: known.warnings },
    clock: { stamp: () => ({ synced: known.clock_synced }) },
    hub: {
      assets: () =>
        [...known.assets, { status: 'online' }, { status: 'offline' }].map((asset) => ({
          health: {},
          ...asset,
        })),
      drivers: () => known.drivers,
    },
    outbox: {
      health: () => known.health,
      ledger: () => ({ ...known.ledger, buffered: 3 }),
      drop_episodes: { current: known.dropping },
      salvage: known.salvage,
      dispatch: { withoutSubscribers: () => known.unheard, refusedKinds: () => known.refused },
    },
    uplink: {
      broker_url: url,
      status: () => ({
        state: last_error === undefined ? 'connected' : 'waiting',
        last_error: last_error ?? null,
      }),
      problems: () => known.broker,
    },
    lowBattery: () => known.low_battery,
    conditions: { sentences: () => known.conditions },
  } as unknown as ReportParts;
}

/** What `systemctl status` would show. */
function lineOf(around: Around): string {
  notifier.status('');
  systemd.read();
  notifier.status(vitals(partsOf(around)).summary());
  return systemd.read().map(String).join('\n');
}

const refusals = [0x84, 0x85, 0x86, 0x87, 0x88, 0x8a, 0x8c, 0x97, 0x9f].map((code) => codeInWords(code));
const errors = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'ENETUNREACH',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
].map((code) => plainFault(Object.assign(new Error(code), { code })));

describe('the line of systemctl status', () => {
  it('has the broker, the assets and the backlog of a kit that is well', () => {
    expect(lineOf({})).toBe(`STATUS=${connected}`);
  });

  it.each(troubles.map((trouble) => [degradedReasons({ ...well, ...trouble }).join(' '), trouble] as const))(
    'names first: %s',
    (reason, trouble) => {
      expect(reason).not.toBe('');
      const line = lineOf(trouble);
      expect(line.startsWith(`STATUS=${reason.slice(0, shown_chars)}`)).toBe(true);
      expect(line.endsWith(` | ${connected}`)).toBe(true);
    },
  );

  it.each([...refusals, ...errors])('names why the broker is not reached: %s', (why) => {
    const shown = why.length > shown_chars ? `${why.slice(0, shown_chars)}...` : why;
    expect(lineOf({ last_error: why })).toBe(`STATUS=${texts.line_not_connected(shown)} | ${facts}`);
  });

  it('names a disk that is full before a broker that is away, and what is less urgent behind both', () => {
    const line = lineOf({
      health: { state: 'full', detail: '0 bytes free' },
      last_error: 'no route',
      clock_synced: false,
    });
    expect(line.split(' | ')).toEqual([
      `STATUS=${texts.disk_full('0 bytes free')}`,
      texts.line_not_connected('no route'),
      texts.clock_not_set,
      facts,
    ]);
  });

  it('names a driver that is tried again and a device that rejects its login, and rejected drivers once', () => {
    const line = lineOf({
      drivers: [
        { ...a_driver, name: 'vehicles', state: 'down', reason: 'port in use' },
        {
          ...a_driver,
          name: 'radios',
          state: 'rejected',
          reason: 'password',
          devices: [{ ...a_device, state: 'rejected' }],
        },
        {
          ...a_driver,
          name: 'cameras',
          state: 'up',
          devices: [a_device, { ...a_device, name: 'Yard', state: 'rejected', reason: 'wrong password' }],
        },
      ],
    });
    expect(line.split(' | ')).toEqual([
      `STATUS=${texts.driver_rejected('radios', 'password')}`,
      texts.line_driver_down('vehicles', 'port in use'),
      texts.line_device_rejected('Yard', 'wrong password'),
      connected,
    ]);
  });

  it('does not repeat that no broker is configured', () => {
    const warning = 'no broker is configured';
    expect(lineOf({ url: no_broker, last_error: 'x', warnings: [warning] })).toBe(
      `STATUS=${warning} | ${facts}`,
    );
  });

  it('counts the faults for which there is no room, and always ends with the facts', () => {
    const warnings = Array.from({ length: 9 }, (_, index) => `${index}${'x'.repeat(300)}`);
    const line = lineOf({ warnings });
    expect(line.startsWith(`STATUS=0${'x'.repeat(shown_chars - 1)}... | 1x`)).toBe(true);
    expect(line.endsWith(` | ${texts.line_more_faults(7)} | ${connected}`)).toBe(true);
  });

  it('stays one clean line whatever a device or a broker writes', () => {
    const hostile = `line\n\u001b]52;c;x\u0007\u202e\n${'x'.repeat(500)}`;
    const drivers = [{ ...a_driver, name: 'x', state: 'down', reason: hostile }] as const;
    const line = lineOf({ last_error: hostile, drivers, warnings: [hostile] });
    expect(line).not.toMatch(/\p{C}/u);
    expect(line.endsWith(facts)).toBe(true);
  });
});
