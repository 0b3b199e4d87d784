/** A password that the broker does not know yet: provisioning that is late, or a rotation in the wrong order. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { test_kit } from '../../support/gps.ts';
import { peerMissing } from '../../support/peers.ts';
import { everythingArrives, withLab } from '../support/lab.ts';

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd'))('a wrong password', () => {
  it('is tried again with pauses, and when it becomes right everything accepted meanwhile arrives', async () => {
    const witness = { username: 'witness', password: 'w' };
    await withLab({ passwords: { [test_kit]: 'old', witness: 'w' } }, async (lab) => {
      const subscriber = await lab.subscribe(witness);
      const connector = await lab.start({ username: test_kit, password: 'new' });
      for (let n = 0; n < 100; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
      await eventually('it was refused twice', () => connector.uplink.status().attempts >= 3);
      expect(connector.uplink.online).toBe(false);
      expect(connector.uplink.status().last_error).not.toBeNull();
      await lab.broker.setPasswords({ [test_kit]: 'new', witness: 'w' });
      await everythingArrives(connector, subscriber);
    });
  });
});
