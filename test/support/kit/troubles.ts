/** A healthy kit as its status sees it, and everything that makes it degraded, in the sentences of the parts themselves. */
import { health_items, type HealthItem } from '../../../src/contract/assets.ts';
import { Conditions, type DegradedFacts } from '../../../src/kit/app/degraded.ts';
import { texts } from '../../../src/kit/app/texts.ts';
import { texts as link_texts } from '../../../drivers/links/texts.ts';
import { texts as device_texts } from '../../../src/toolkit/device/texts.ts';
import { storage_faults } from '../../../src/platform/errors.ts';
import { streamWithLogin } from '../../../src/toolkit/driver/stream-login.ts';
import { BrokerLimits } from '../../../src/kit/uplink/broker-limits.ts';
import { noteTooLarge } from '../../../src/kit/uplink/inbox.ts';
import { noteBirth, noteRefused } from '../../../src/kit/uplink/presence.ts';
import { noteUndelivered, Problems, Takeovers } from '../../../src/kit/uplink/problems.ts';
import { texts as uplink_texts } from '../../../src/kit/uplink/texts.ts';

export const well: DegradedFacts = {
  health: { state: 'ok', detail: '' },
  ledger: {
    since_ms: null,
    accepted: 0,
    delivered: 0,
    buffered: 0,
    quarantined: 0,
    dropped: {},
    balanced: true,
  },
  dropping: [],
  salvage: undefined,
  unheard: [],
  broker: [],
  refused: [],
  drivers: [],
  assets: [],
  clock_synced: true,
  low_battery: null,
  conditions: [],
  warnings: [],
};

const { stream_fault: plain_rtsp_fault } = streamWithLogin(
  'rtsp://x/',
  { username: 'x', password: 'x' },
  { needs_tls: true },
);

/** An asset that does not deliver this. */
export function failingAsset(
  name: string,
  item: HealthItem,
  reason: string,
): DegradedFacts['assets'][number] {
  return { name, health: { [item]: { state: 'fails', reason, next_try_at: null } } };
}

export const a_driver = {
  name: 'x',
  driver: 'x',
  since: '',
  reason: null,
  next_try_at: null,
  runs: 1,
  failures: 1,
  facts: {},
} as const;

export const a_device = {
  name: 'Gate',
  tried: '10.0.0.5:443',
  asset_key: null,
  state: 'online',
  reason: null,
  tried_at: null,
  next_try_at: null,
} as const;

const salvage = { kind: 'damaged', cause: 'x', moved_to: 'x', rows_saved: 1, rows_lost: null } as const;

/** Every sentence that the uplink has. */
function brokerSentences(): readonly string[] {
  const sentences: string[] = [];
  const problems = new Problems(() => 0, { warn: () => undefined });
  const note = problems.note.bind(problems);
  problems.note = (kind, what) => {
    sentences.push(what.sentence);
    note(kind, what);
  };
  const takeovers = new Takeovers(() => 0, problems);
  for (const code of [0x8e, undefined, undefined, undefined, undefined])
    takeovers.ended({ code, held_ms: 0, without_a_word: true });
  const limits = new BrokerLimits(problems);
  for (const code of [0x9a, 0x9b]) limits.refused(code);
  limits.accepted({ retains: true, qos_max: 2, announces_no_room: true, packet_bytes_max: 1_000_000 });
  noteTooLarge({ topic: 'x', bytes: 1, packet_id: 1 }, problems);
  noteRefused(new Map([['x', 0x87]]), problems);
  noteBirth(0x87, 'k1/x/up/state', problems);
  noteUndelivered(['feed'], problems);
  return [...sentences, uplink_texts.set_mtu('sat0', 'x'), uplink_texts.set_mtu(null, 'x')];
}

/** The sentence of a part of the daemon that does not run. */
function condition(...[kind, sentence]: Parameters<Conditions['note']>): Partial<DegradedFacts> {
  const conditions = new Conditions();
  conditions.note(kind, sentence);
  return { conditions: conditions.sentences() };
}

/** Each makes a healthy kit degraded for one reason. */
export const troubles: readonly Partial<DegradedFacts>[] = [
  ...brokerSentences().map((sentence) => ({ broker: [sentence] })),
  { health: { state: 'full', detail: 'x' } },
  { health: { state: 'failing', detail: 'x' } },
  ...storage_faults.map((fault) => ({ health: { state: 'failing', detail: 'x', fault } as const })),
  { salvage },
  { salvage: { ...salvage, kind: 'too_new' } },
  { salvage: { ...salvage, kind: 'other_kit' } },
  { ledger: { ...well.ledger, quarantined: 2 } },
  ...(['limit', 'disk', 'age', 'memory'] as const).map((cause): Partial<DegradedFacts> => ({
    dropping: [{ cause, lanes: ['feed'] }],
  })),
  { unheard: ['feed'] },
  { refused: [{ kind: 'feed', code: 0x87, reason: 'not authorised to publish here' }] },
  condition('configuration', texts.configuration_rejected(1)),
  condition('configuration', texts.configuration_rejected(3)),
  condition('configuration', texts.configuration_not_applied),
  condition('service', texts.service_off('port in use')),
  condition('metrics', texts.metrics_off('port in use')),
  { drivers: [{ ...a_driver, state: 'rejected' }] },
  { drivers: [{ ...a_driver, state: 'hung' }] },
  ...health_items.map((item) => ({ assets: [failingAsset('Gate', item, plain_rtsp_fault ?? '')] })),
  {
    drivers: [
      { ...a_driver, state: 'up', devices: [{ ...a_device, weakness: device_texts.legacy_tls('Gate') }] },
    ],
  },
  ...[
    link_texts.dead_link_in_use('sat0', 'wwan0'),
    link_texts.cap_used('wwan0', { used_gb: 41, cap_gb: 50, renewed: '2026-12-01' }),
    link_texts.cap_forecast('wwan0', { forecast_gb: 61, cap_gb: 50, renewed: '2026-12-01' }),
  ].map((weakness): Partial<DegradedFacts> => ({
    drivers: [{ ...a_driver, state: 'up', devices: [{ ...a_device, weakness }] }],
  })),
  { clock_synced: false },
  { ledger: { ...well.ledger, balanced: false } },
];
