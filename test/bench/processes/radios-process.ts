/** Twenty radios in a process of their own, so that their work is not counted as the driver's. */
import { FakeRadio } from '../../fakes/fake-radio.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { selfSignedRadio } from '../../support/drivers/vendorradio-lab.ts';

const radios_count = 20;

const tls = await selfSignedRadio(await makeDirectory(), 'radio');
const radios = Array.from(
  { length: radios_count },
  (_none, index) => new FakeRadio({ tls, mac: `02:00:00:00:01:${(index + 16).toString(16)}` }),
);
await Promise.all(radios.map(async (radio) => radio.start()));
process.on('disconnect', () => process.exit(0));
process.send?.(radios.map(({ port }) => port));
