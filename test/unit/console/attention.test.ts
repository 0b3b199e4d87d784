/** What needs a person: batteries as the vehicle judges them, and its failsafes. */
import { describe, expect, it } from 'vitest';
import { attentionList } from '../../../src/console/views/attention.ts';

const time = '2026-11-21T10:00:00.000Z';
const id = '00000000-0000-4000-8000-000000000001';

/** The titles for one drone with these feeds. */
function titlesWith(feeds: Readonly<Record<string, object>>): readonly string[] {
  const asset = { id, name: 'Falcon', type: 'drone', status: 'online', last_seen_at: time, feed_names: [] };
  const messages = Object.fromEntries(Object.entries(feeds).map(([feed, data]) => [feed, { time, data }]));
  const now = {
    time_ms: Date.parse(time),
    link: { state: 'live' },
    world: {
      kit: { kit_id: id, online: true, last_seen: time, wans: [], battery: null, location: null, times: {} },
      queue: undefined,
      linkEdges: new Map(),
      assets: new Map([[id, asset]]),
      feeds: new Map([[id, messages]]),
    },
  };
  return attentionList(now as unknown as Parameters<typeof attentionList>[0]).map(
    ({ level, title }) => `${level} ${title}`,
  );
}

const battery = { voltage: 10.6, current: null, remaining_pct: 91 };

describe('Attention', () => {
  it.each([
    [
      'a full battery at a voltage that is critical',
      { battery: { ...battery, charge_state: 'critical' } },
      ['bad Falcon: Battery 91\u00a0%, 10.6\u00a0V, critical'],
    ],
    [
      'a low one',
      { battery: { ...battery, charge_state: 'low' } },
      ['warn Falcon: Battery 91\u00a0%, 10.6\u00a0V, low'],
    ],
    [
      'one with little left',
      { battery: { ...battery, remaining_pct: 15 } },
      ['warn Falcon: Battery 15\u00a0%, 10.6\u00a0V'],
    ],
    ['a good one', { battery: { ...battery, charge_state: 'ok' } }, []],
    [
      'a failsafe',
      { failsafe: { detected: true, types: ['link'], causes: [{ type: 'link', reason: 'GCS Failsafe' }] } },
      ['bad Falcon: Failsafe: ground station lost'],
    ],
    ['none', { failsafe: { detected: false, types: [], causes: [] } }, []],
  ])('for %s', (_, feeds, titles) => {
    expect(titlesWith(feeds)).toEqual(titles);
  });
});
