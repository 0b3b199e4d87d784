/** Two kits that read one radio: both keep their data, also where the radio has one session for its user. */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { vendorradioWith } from '../../../../drivers/vendorradio/vendorradio.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  quick_limits,
  vendorradioLab,
  type VendorradioLab,
} from '../../../support/drivers/vendorradio-lab.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { texts } from '../../../../drivers/vendorradio/texts.ts';

let lab: VendorradioLab;
let other: ReturnType<typeof hubLab>;
afterEach(async () => {
  await other.stop();
  await lab.stop();
});

/** The lab, and a second kit with a memory of its own, which reads the same radio with the same user. */
async function twoKits(sessions_max?: number): Promise<void> {
  lab = await vendorradioLab();
  lab.radio.sessions.sessions_max = sessions_max;
  other = hubLab({
    configured: ['radios'],
    state_dir: join(lab.dir, 'other'),
    rates: { default: 1_000 },
  });
  lab.start();
  void other.run(vendorradioWith(quick_limits), 'radios', { options: lab.options() });
}

const readings = ({ outbox }: ReturnType<typeof hubLab>) =>
  outbox.drafts.filter(({ channel }) => channel.endsWith('/radio'));
const warnings = ({ log }: ReturnType<typeof hubLab>) =>
  log.at('warn').filter((sentence) => sentence !== texts.no_tls);

describe('two kits that read one radio', () => {
  const bothHave = async (count: number): Promise<void> =>
    eventually('both have read it often', () =>
      [lab.hub, other].every((kit) => readings(kit).length >= count),
    );
  const neverLost = (): void => {
    for (const { outbox } of [lab.hub, other]) {
      const states = outbox.drafts.filter(({ channel }) => channel.endsWith('/asset_status'));
      expect(states.map(({ data }) => data?.['status'])).toEqual(['online']);
    }
  };

  it('log in once each where the radio has a session for each', async () => {
    await twoKits();
    await bothHave(10);
    neverLost();
    expect(lab.radio.sessions.logins).toBe(2);
    expect([...warnings(lab.hub), ...warnings(other)]).toEqual([]);
  });

  it('both keep their data where the radio has one session for their user, and log it once', async () => {
    await twoKits(1);
    await eventually('both have noticed', () => [lab.hub, other].every((kit) => warnings(kit).length > 0));
    const before = Math.max(...[lab.hub, other].map((kit) => readings(kit).length));
    await bothHave(before + 10);
    neverLost();
    expect([warnings(lab.hub), warnings(other)]).toEqual([[texts.contested], [texts.contested]]);
  });
});
