/** Data caps: use, forecast, alarm and the sentence for it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Caps, capWeakness, capOf } from '../../../../drivers/links/usage/cap.ts';
import { texts } from '../../../../drivers/links/texts.ts';
import { monthEnd } from '../../../../drivers/links/usage/calendar.ts';
import { type UsageLedger, usageOf } from '../../../../drivers/links/usage/usage.ts';
import { links } from '../../../../drivers/links/links.ts';
import { gateway } from '../../../../drivers/gateway/gateway.ts';
import { type DataCap, gatewayFeeds } from '../../../../src/contract/feeds.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeMachine, type FakeMachine } from '../../../support/gateway/fake-machine.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { withDirectory } from '../../../support/temporary.ts';

const gb = 1e9;
const capped = (days: UsageLedger['days'], day: string | null, month_starts_on = 1) =>
  capOf({
    name: 'wwan0',
    limits: { cap_gb: 50, warn_pct: 80 },
    usage: usageOf({ last: null, days, pending: [0, 0] }, day, month_starts_on),
    days,
    day,
    month_starts_on,
  });

describe('A data cap', () => {
  it('counts both directions, and forecasts the mean of the whole days for the rest of the month', () => {
    const days = {
      '2026-11-01': [1 * gb, 0.5 * gb],
      '2026-11-02': [2 * gb, 0.5 * gb],
      '2026-11-03': [1 * gb, 0],
    } as const;
    expect(capped({ ...mutable(days) }, '2026-11-03')).toEqual({
      name: 'wwan0',
      cap_gb: 50,
      used_gb: 5,
      used_pct: 10,
      forecast_gb: 60,
      last_day: '2026-11-30',
      state: 'forecast',
    });
  });

  it('has no forecast on its first day, and counts from the first day that was seen', () => {
    expect(capped({ '2026-11-20': [3 * gb, 0] }, '2026-11-20')).toMatchObject({
      forecast_gb: null,
      state: 'ok',
    });
    const days: UsageLedger['days'] = { '2026-11-20': [3 * gb, 0], '2026-11-21': [1 * gb, 0] };
    expect(capped(days, '2026-11-21')).toMatchObject({ forecast_gb: 33, state: 'ok' });
  });

  it('forecasts from the first day of its billing month on, also over the end of a calendar month', () => {
    const days: UsageLedger['days'] = {
      '2026-11-14': [20 * gb, 0],
      '2026-11-30': [1 * gb, 0],
      '2026-12-01': [1 * gb, 0],
    };
    expect(capped(days, '2026-12-01', 15)).toMatchObject({
      used_gb: 2,
      forecast_gb: 15,
      last_day: '2026-12-14',
    });
  });

  it('is a warning from its share on, and exceeded from the cap on', () => {
    expect(capped({ '2026-11-30': [40 * gb, 0] }, '2026-11-30')).toMatchObject({
      used_pct: 80,
      state: 'warning',
    });
    expect(capped({ '2026-11-30': [30 * gb, 20 * gb] }, '2026-11-30')).toMatchObject({ state: 'exceeded' });
  });

  it('is unknown while the clock is not set or nothing was counted', () => {
    expect(capped({ '2026-11-30': [1, 1] }, null)).toBeNull();
    expect(capped({}, '2026-11-30')).toBeNull();
  });

  it.each([
    ['2026-11-30', 1, '2026-11-30'],
    ['2026-12-31', 1, '2026-12-31'],
    ['2026-11-14', 15, '2026-11-14'],
    ['2026-11-15', 15, '2026-12-14'],
    ['2026-12-20', 15, '2027-01-14'],
    ['2027-02-27', 31, '2027-02-27'],
    ['2027-02-28', 31, '2027-03-30'],
  ])('ends for %s with a month that starts on %i on %s', (day, starts_on, last) => {
    expect(monthEnd(day, starts_on)).toBe(last);
  });

  it('is published with each change of its state as an alarm, over restarts too, and as a list now and then', () => {
    const sent: [string, unknown][] = [];
    const log = recordingLog();
    const host: ConstructorParameters<typeof Caps>[0] = {
      log,
      publishGateway: (feed, message) => void sent.push([feed, message]),
    };
    const states = new Map<string, DataCap['state']>();
    const memory = {
      capState: (name: string) => states.get(name) ?? 'ok',
      noteCap: (name: string, state: DataCap['state']) => void states.set(name, state),
    };
    const caps = new Caps(host, memory);
    const cap: DataCap = {
      name: 'wwan0',
      cap_gb: 50,
      used_gb: 10,
      used_pct: 20,
      forecast_gb: null,
      last_day: '2026-11-30',
      state: 'ok',
    };
    caps.report([cap], 0);
    caps.report([cap], 5_000);
    expect(sent.map(([feed]) => feed)).toEqual(['data_caps']);
    caps.report([{ ...cap, used_gb: 41, state: 'warning' }], 10_000);
    caps.report([{ ...cap, used_gb: 42, state: 'warning' }], 15_000);
    expect(sent.map(([feed]) => feed)).toEqual(['data_caps', 'data_cap', 'data_caps']);
    expect(log.lines).toMatchObject([
      { level: 'warn', sentence: texts.cap_states.warning, facts: { renewed_on: '2026-12-01' } },
    ]);
    caps.report([{ ...cap, used_gb: 42, state: 'warning' }], 700_000);
    expect(sent.map(([feed]) => feed).at(-1)).toBe('data_caps');
    // The next run: the alarm was given.
    const count = sent.length;
    new Caps(host, memory).report([{ ...cap, used_gb: 42, state: 'warning' }], 700_001);
    expect(sent.slice(count).map(([feed]) => feed)).toEqual(['data_caps']);
    expect(capWeakness(cap)).toBeUndefined();
    expect(capWeakness({ ...cap, state: 'exceeded' })).toBe(
      texts.cap_used('wwan0', { used_gb: 10, cap_gb: 50, renewed: '2026-12-01' }),
    );
    for (const [feed, message] of sent)
      expect(
        feed === 'data_cap' ? gatewayFeeds.data_cap.parse(message) : gatewayFeeds.data_caps.parse(message),
      ).toEqual(message);
  });

  describe('of a link', () => {
    let machine: FakeMachine;
    beforeEach(async () => {
      machine = await fakeMachine();
      await machine.setInterface({ name: 'eth0', rx_bytes: 1_000 });
      await machine.setRoutes([{ device: 'eth0' }]);
    });
    afterEach(async () => machine.remove());

    it('stands on the gateway, and degrades the kit once it is used', async () => {
      await withDirectory(async (state_dir) => {
        const lab = hubLab({ configured: ['links', 'gateway'], state_dir });
        const { proc, sys } = machine.roots;
        void lab.run(gateway, 'gateway', { options: {} });
        const options = { interval_s: 0.1, roots: { proc, sys }, wan: { eth0: { cap_gb: 0.001 } } };
        void lab.run(links, 'links', { options });
        try {
          await eventually('counting', () => lab.hub.links()[0]?.usage?.today_rx_gb === 0);
          await machine.setInterface({ name: 'eth0', rx_bytes: 3_001_000 });
          const { data } = await lab.outbox.until(
            ({ channel, lane }) =>
              channel.startsWith('event/') && channel.endsWith('/data_cap') && lane === 'alarm',
          );
          expect(data).toMatchObject({ name: 'eth0', state: 'exceeded', used_gb: 0.003 });
          const view = () => lab.hub.drivers().find(({ name }) => name === 'links');
          await eventually('degraded', () => view()?.devices?.[0]?.weakness !== undefined);
          expect(view()).toMatchObject({
            facts: { order: 'eth0' },
            devices: [{ name: 'eth0', state: 'online', reason: null }],
          });
        } finally {
          await lab.stop();
        }
      });
    });
  });
});

function mutable(days: Readonly<Record<string, readonly [number, number]>>): UsageLedger['days'] {
  return Object.fromEntries(Object.entries(days).map(([day, [rx, tx]]) => [day, [rx, tx]]));
}
