/** What the README says of the configuration and of the kit's sentences is what the code does. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { drivers } from '../../../drivers/index.ts';
import { texts as device_texts } from '../../../src/device/texts.ts';
import { degradedReasons, type DegradedFacts } from '../../../src/app/degraded.ts';
import { streamWithLogin } from '../../../src/driver/stream-login.ts';
import { BrokerLimits } from '../../../src/uplink/broker-limits.ts';
import { noteTooLarge } from '../../../src/uplink/inbox.ts';
import { noteBirth, noteRefused } from '../../../src/uplink/introduction.ts';
import { Problems } from '../../../src/uplink/problems.ts';
import { Takeovers } from '../../../src/uplink/takeovers.ts';
import { noteUndelivered } from '../../../src/uplink/undelivered.ts';
import { readConfig } from '../../../src/config/config.ts';
import { configFile } from '../../../src/config/schema.ts';
import { withDirectory } from '../../support/temporary.ts';

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
const degraded_page = readFileSync(new URL('../../../src/app/README.md', import.meta.url), 'utf8');
const sample = /```yaml\n([^]*?)```/u.exec(readme)?.[1] ?? '';
const secrets_dir = '/etc/kit-connector';

/** Writes the file into a directory of its own, with the secrets that it names beside it, and reads it. */
async function read(text: string) {
  return withDirectory(async (dir) => {
    await mkdir(join(dir, 'secrets'));
    await writeFile(join(dir, 'secrets/mqtt-password'), 'secret', { mode: 0o600 });
    const file = join(dir, 'config.yaml');
    await writeFile(file, text.replaceAll(secrets_dir, join(dir, 'secrets')));
    return readConfig(file, { drivers, credentials_dir: undefined });
  });
}

it('the sample of the configuration is accepted and names every section', async () => {
  const config = await read(sample);
  expect(config.drivers.map(({ name }) => name)).toEqual(['gateway', 'links']);
  for (const key of Object.keys(configFile.shape)) expect(sample).toMatch(new RegExp(`^(# )?${key}:`, 'mu'));
});

it('the values that the sample calls defaults are the defaults', async () => {
  const shown = await read(sample);
  const bare = await read(
    'kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\nbroker: { url: mqtts://broker.example.com:8883 }\n',
  );
  expect({ ...shown.broker, password: undefined }).toEqual(bare.broker);
  expect({ ...shown.uplink, backlog_bytes_per_s: bare.uplink.backlog_bytes_per_s }).toEqual(bare.uplink);
  expect({ ...shown.commands, disabled: [] }).toEqual(bare.commands);
  for (const key of ['state_dir', 'runtime_dir', 'outbox', 'feeds', 'telemetry'] as const)
    expect(shown[key]).toEqual(bare[key]);
});

const { stream_fault: plain_rtsp_fault } = streamWithLogin(
  'rtsp://x/',
  { username: 'x', password: 'x' },
  { needs_tls: true },
);

const well: DegradedFacts = {
  health: { state: 'ok', detail: '' },
  ledger: { accepted: 0, delivered: 0, buffered: 0, quarantined: 0, dropped: {}, balanced: true },
  salvage: undefined,
  unheard: [],
  broker: [],
  refused: [],
  drivers: [],
  assets: [],
  clock_synced: true,
  low_battery: null,
  warnings: [],
};
const driver = {
  name: 'x',
  driver: 'x',
  since: '',
  reason: null,
  next_try_at: null,
  runs: 1,
  failures: 1,
  facts: {},
};
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
  limits.accepted({ retains: true, qos_max: 2, announces_no_room: true });
  noteTooLarge({ topic: 'x', bytes: 1, packet_id: 1 }, problems);
  noteRefused(new Map([['x', 0x87]]), problems);
  noteBirth(0x87, 'k1/x/up/state', problems);
  noteUndelivered(['feed'], problems);
  return sentences;
}

const device = {
  name: 'Gate',
  tried: '10.0.0.5:443',
  asset_key: null,
  state: 'online',
  reason: null,
  tried_at: null,
  next_try_at: null,
} as const;

const troubles: readonly Partial<DegradedFacts>[] = [
  ...brokerSentences().map((sentence) => ({ broker: [sentence] })),
  { health: { state: 'full', detail: 'x' } },
  { health: { state: 'failing', detail: 'x' } },
  { salvage },
  { salvage: { ...salvage, kind: 'too_new' } },
  { salvage: { ...salvage, kind: 'other_kit' } },
  { ledger: { ...well.ledger, quarantined: 2 } },
  { unheard: ['feed'] },
  { refused: [{ kind: 'feed', code: 0x87, reason: 'not authorised to publish here' }] },
  { drivers: [{ ...driver, state: 'rejected' }] },
  { drivers: [{ ...driver, state: 'hung' }] },
  { assets: [{ name: 'Gate', stream_fault: plain_rtsp_fault }] },
  {
    drivers: [
      { ...driver, state: 'up', devices: [{ ...device, weakness: device_texts.legacy_tls('Gate') }] },
    ],
  },
  { clock_synced: false },
  { ledger: { ...well.ledger, balanced: false } },
];

it('each sentence of a kit that is not at its best is explained', () => {
  const rows = degraded_page.slice(degraded_page.indexOf('| sentence |')).split('\n| ').slice(1);
  const patterns = rows.map((row) => {
    const [, pattern = ''] = /^`([^`]*)`/u.exec(row) ?? [];
    return new RegExp(
      `^${pattern
        .split('...')
        .map((part) => part.replaceAll(/[.()[\]]/gu, '\\$&'))
        .join('.*')}$`,
      'u',
    );
  });
  expect(degradedReasons(well)).toEqual([]);
  for (const trouble of troubles) {
    const reasons = degradedReasons({ ...well, ...trouble });
    expect(reasons).toHaveLength(1);
    expect(patterns.filter((pattern) => pattern.test(reasons[0] ?? ''))).toHaveLength(1);
  }
});
