/** Local policy: which commands may run, and that the cloud can make the kit send less than its file says, never more. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commandPolicy, PacePolicy, uploadRule } from '../../../../src/kit/app/policy.ts';
import type { Config } from '../../../../src/kit/config/config.ts';
import { videoSection } from '../../../../src/kit/config/media.ts';
import { linkType, type LinkType } from '../../../../src/contract/kit.ts';
import { kitConfig } from '../../../../src/contract/tasks.ts';
import { defineCommand, noInput } from '../../../../src/toolkit/driver/command.ts';

const camera = { asset_id: '8aa2fc19-bfff-5367-a6e0-1c7000065452', asset_key: 'onvif:gate' };
const other = { asset_id: '0c2f6f0a-33d8-4a4c-9d0e-6f1d2b3c4d5e', asset_key: 'onvif:yard' };

const named = (name: string, risk_level: 'low' | 'medium' | 'high' = 'low') =>
  defineCommand({ name, description: '', risk_level, input: noInput, handle: async () => ({}) });

describe('the policy on commands', () => {
  const disabled = 'reboot is disabled on this kit by its configuration (commands.disabled)';

  it('allows everything up to the risk that the file names', () => {
    const allowed = (max_risk: 'low' | 'medium' | 'high'): readonly boolean[] =>
      (['low', 'medium', 'high'] as const).map(
        (risk) => commandPolicy({ disabled: [], max_risk })(camera, named('move', risk)) === true,
      );
    expect([allowed('low'), allowed('medium'), allowed('high')]).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ]);
    expect(commandPolicy({ disabled: [], max_risk: 'low' })(camera, named('arm', 'high'))).toBe(
      'arm has high risk, and this kit allows low at most (commands.max_risk)',
    );
  });

  it.each([
    { asset: camera.asset_key, command: 'reboot', forbids: 'by key', of_camera: disabled, of_other: true },
    { asset: camera.asset_id, command: 'reboot', forbids: 'by id', of_camera: disabled, of_other: true },
    { asset: '*', command: 'reboot', forbids: 'of every asset', of_camera: disabled, of_other: disabled },
    { asset: '*', command: 'arm', forbids: 'of another name', of_camera: true, of_other: true },
    { asset: camera.asset_key, command: '*', forbids: 'of any name', of_camera: disabled, of_other: true },
  ])('forbids a command $forbids', ({ asset, command, of_camera, of_other }) => {
    const allow = commandPolicy({ disabled: [{ asset, command }], max_risk: 'high' });
    expect([allow(camera, named('reboot')), allow(other, named('reboot'))]).toEqual([of_camera, of_other]);
  });

  it('names the rule of the file before the risk', () => {
    const allow = commandPolicy({ disabled: [{ asset: '*', command: 'reboot' }], max_risk: 'low' });
    expect(allow(camera, named('reboot', 'high'))).toBe(disabled);
  });
});

type Paced = Pick<Config, 'feeds' | 'uplink'>;

const hertz = fc.double({ min: 0.001, max: 50, noNaN: true });
const feeds = ['gps', 'attitude', 'battery'];
const link = fc.option(fc.constantFrom(...linkType.options), { nil: undefined });
const bytes_per_s = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1_000_000 }));
const links_and_default = ['default', ...linkType.options] as const;

const file: fc.Arbitrary<Paced> = fc.record({
  feeds: fc.record({
    rates_hz: fc.dictionary(fc.constantFrom(...feeds), hertz),
    rate_default_hz: hertz,
  }),
  uplink: fc.record({
    window_messages: fc.constant(64),
    messages_per_s_max: fc.constant(0),
    packet_ms: fc.integer({ min: 0, max: 5_000 }),
    metered: fc.uniqueArray(fc.constantFrom(...linkType.options)),
    backlog_bytes_per_s: fc.tuple(...links_and_default.map(() => bytes_per_s)).map((caps) => {
      const [fallback = 0] = caps;
      return Object.assign(
        { default: fallback, ...everyLink(fallback) },
        Object.fromEntries(links_and_default.map((name, at) => [name, caps[at] ?? 0])),
      );
    }),
  }),
});

function everyLink(bytes: number): Record<LinkType, number> {
  return { ethernet: bytes, wifi: bytes, cellular: bytes, satellite: bytes };
}

/** As `down/config` may ask, which has passed the schema of the contract. */
const asked = fc
  .record(
    {
      rates_hz: fc.dictionary(fc.constantFrom('default', ...feeds), hertz),
      backlog_kbps: fc.dictionary(
        fc.constantFrom(...links_and_default),
        fc.double({ min: 0, max: 1_000_000, noNaN: true }),
      ),
      metered: fc.uniqueArray(fc.constantFrom(...linkType.options)),
    },
    { requiredKeys: [] },
  )
  .map((raw) => kitConfig.parse(raw));

function policy(config: Paced, in_use: LinkType | undefined): PacePolicy {
  return new PacePolicy(
    () => config,
    () => in_use,
  );
}

describe('the policy on the pace', () => {
  it('never sends a feed more often than configured, whatever the cloud requests', () => {
    fc.assert(
      fc.property(file, asked, (config, cloud) => {
        const pace = policy(config, undefined);
        pace.apply(cloud);
        const { default: fallback, ...rates } = pace.rates();
        const { rates_hz, rate_default_hz } = config.feeds;
        expect(fallback).toBeLessThanOrEqual(rate_default_hz);
        for (const feed of feeds) {
          expect(rates[feed] ?? fallback).toBeLessThanOrEqual(rates_hz[feed] ?? rate_default_hz);
        }
      }),
    );
  });

  it('never sends packets more often or the backlog faster than configured, whatever the cloud requests', () => {
    fc.assert(
      fc.property(file, asked, link, (config, cloud, in_use) => {
        const before = policy(config, in_use);
        const pace = policy(config, in_use);
        pace.apply(cloud);
        expect(pace.packetMs()).toBeGreaterThanOrEqual(before.packetMs());
        const cap = (kbps: number): number => (kbps === 0 ? Infinity : kbps);
        expect(cap(pace.backlogKbps())).toBeLessThanOrEqual(cap(before.backlogKbps()));
      }),
    );
  });

  const config: Paced = {
    feeds: { rates_hz: { gps: 2, attitude: 10 }, rate_default_hz: 5 },
    uplink: {
      window_messages: 64,
      messages_per_s_max: 0,
      packet_ms: 0,
      metered: ['satellite'],
      backlog_bytes_per_s: { ...everyLink(0), default: 0, satellite: 32_000 },
    },
  };

  it('sends less where the cloud requests less, by feed or for all feeds', () => {
    const pace = policy(config, undefined);
    pace.apply({ rates_hz: { gps: 1, default: 4 } });
    expect(pace.rates()).toEqual({ default: 4, gps: 1, attitude: 4 });
    pace.apply({ rates_hz: { gps: 50 } });
    expect(pace.rates()).toEqual({ default: 5, gps: 2, attitude: 10 });
  });

  it('replaces the rates of the cloud with its next request', () => {
    const pace = policy(config, 'cellular');
    pace.apply({ rates_hz: { gps: 1 }, metered: ['cellular'], backlog_kbps: { default: 64 } });
    expect([pace.rates()['gps'], pace.packetMs(), pace.backlogKbps()]).toEqual([1, 1_000, 64]);
    pace.apply({});
    expect([pace.rates()['gps'], pace.packetMs(), pace.backlogKbps()]).toEqual([2, 0, 0]);
  });

  it('follows the link in use: on a metered link it packs messages and applies the data cap of that link', () => {
    const used: { link: LinkType | undefined } = { link: 'ethernet' };
    const pace = new PacePolicy(
      () => config,
      () => used.link,
    );
    expect([pace.packetMs(), pace.backlogKbps()]).toEqual([0, 0]);
    used.link = 'satellite';
    expect([pace.packetMs(), pace.backlogKbps()]).toEqual([1_000, 256]);
    used.link = undefined;
    expect([pace.packetMs(), pace.backlogKbps()]).toEqual([0, 0]);
  });

  it('takes the lower of two caps on the backlog, and the only one where there is one', () => {
    const satellite = policy(config, 'satellite');
    const ethernet = policy(config, 'ethernet');
    for (const pace of [satellite, ethernet]) pace.apply({ backlog_kbps: { default: 512, satellite: 64 } });
    expect([satellite.backlogKbps(), ethernet.backlogKbps()]).toEqual([64, 512]);
    satellite.apply({ backlog_kbps: { satellite: 1_000 } });
    expect(satellite.backlogKbps()).toBe(256);
  });
});

describe('the policy on files', () => {
  it.each([
    [{ default: 'always' }, 'ethernet', false, 'always'],
    [{ default: 'always' }, 'default', false, 'always'],
    [{ default: 'always' }, 'satellite', true, 'on_order'],
    [{ default: 'never' }, 'satellite', true, 'never'],
    [{ default: 'always', satellite: 'always' }, 'satellite', true, 'always'],
    [{ default: 'always', cellular: 'never' }, 'cellular', false, 'never'],
    [{ default: 'on_order', wifi: 'always' }, 'wifi', false, 'always'],
  ] as const)('%j allows on %s, metered %s: %s', (upload, link, isMetered, rule) => {
    expect(uploadRule(upload, link, isMetered)).toBe(rule);
  });
});

describe('video for viewers of the cloud', () => {
  const cap = (state: 'ok' | 'exceeded') => ({
    name: 'wwan0',
    cap_gb: 5,
    used_gb: 5.001,
    used_pct: 100,
    forecast_gb: null,
    last_day: '2026-11-30',
    state,
  });
  const grant = (video: object, link: LinkType, state: 'ok' | 'exceeded' = 'ok') => {
    const paced = { uplink: { metered: ['satellite', 'cellular'] } };
    const policy = new PacePolicy(
      () => paced as unknown as Paced,
      () => link,
    );
    return policy.videoGrant(videoSection.parse(video), cap(state));
  };

  it.each([
    [{}, 'ethernet', 'ok', 'free'],
    [{}, 'cellular', 'ok', 'limited'],
    [{ metered: 'never' }, 'cellular', 'ok', 'never'],
    [{ links: { ethernet: 'on_demand' } }, 'ethernet', 'ok', 'limited'],
    // A data cap that is used up ends it, unless the file says that it may cost.
    [{}, 'cellular', 'exceeded', 'never'],
    [{}, 'ethernet', 'exceeded', 'never'],
    [{ metered: 'free' }, 'cellular', 'exceeded', 'free'],
    [{ links: { cellular: 'free' } }, 'cellular', 'exceeded', 'free'],
  ] as const)('%j over %s with a cap that is %s: %s', (video, link, state, kind) => {
    expect(grant(video, link, state).kind).toBe(kind);
  });

  it('names the cap, what is used and the key', () => {
    expect(grant({}, 'cellular', 'exceeded')).toMatchObject({
      reason:
        'the data cap of the wwan0 link is used up (5.001 of 5 GB until 2026-11-30): no video over it; raise its cap_gb, or set video to free',
    });
  });
});
