/** systemd-logind on a private bus, as far as a restart goes; it can refuse, forget and fall silent. */
import { ownName } from '../../support/drivers/bus-service.ts';

export interface FakeLogind {
  /** What CanReboot answers. */
  can: 'yes' | 'no' | 'challenge' | 'na';
  /** `refuses`: an error, `vanishes`: the bus connection ends without an answer, as in a restart. */
  reboot: 'accepts' | 'refuses' | 'vanishes';
  /** Restarts that were ordered, each with its argument `interactive`. */
  readonly orders: readonly unknown[];
  /** Called with each order that is accepted. */
  onReboot: () => void;
  stop(): void;
}

const name = 'org.freedesktop.login1';

/** Takes logind's name on the bus. `kill` ends the bus. */
export async function startFakeLogind(address: string, kill: () => void): Promise<FakeLogind> {
  const orders: unknown[] = [];
  const fake: FakeLogind = {
    can: 'yes',
    reboot: 'accepts',
    orders,
    onReboot: () => undefined,
    stop: () => service.stop(),
  };
  const service = await ownName(address, name, ({ member, sender = '', serial = 0, body = [] }) => {
    const about = { destination: sender, replySerial: serial };
    if (member === 'CanReboot') {
      service.send({ type: 2, ...about, signature: 's', body: [fake.can] });
      return;
    }
    if (member !== 'Reboot') return;
    if (fake.reboot === 'refuses') {
      const errorName = 'org.freedesktop.login1.OperationInProgress';
      service.send({ type: 3, ...about, errorName, signature: 's', body: ['Already in progress'] });
      return;
    }
    orders.push(body[0]);
    if (fake.reboot === 'vanishes') kill();
    else service.send({ type: 2, ...about });
    fake.onReboot();
  });
  return fake;
}
