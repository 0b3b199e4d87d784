/** The simulated camera of the demo. */
import { expect, it } from 'vitest';
import { startSimHost } from '../../../../drivers/vendorcam/sim/sim-host.ts';
import { freePort } from '../../../support/ports.ts';

type Ask = (command: object, token?: string) => Promise<string>;

const asker =
  (port: number): Ask =>
  async (command, token = '') => {
    const url = `http://127.0.0.1:${port}/api.cgi?token=${token}`;
    return (await fetch(url, { method: 'POST', body: JSON.stringify([command]) })).text();
  };

async function login(ask: Ask): Promise<string | undefined> {
  const user = { Version: '0', userName: 'admin', password: 'secret' };
  return /"name":"([^"]+)"/u.exec(await ask({ cmd: 'Login', param: { User: user } }))?.[1];
}

it('answers another client, which sets motion detection without a zone and reads the hardware version', async () => {
  const stopping = new AbortController();
  const port = await freePort();
  const host = await startSimHost({ password: 'secret', name: 'Yard' }, port, stopping.signal);
  const ask = asker(port);
  try {
    const token = await login(ask);
    const alarm = { channel: 0, newSens: { sensDef: 25 } };
    expect(await ask({ cmd: 'SetMdAlarm', action: 0, param: { MdAlarm: alarm } }, token)).toContain(
      '"rspCode":200',
    );
    expect(await ask({ cmd: 'GetDevInfo', action: 0 }, token)).toContain('"hardVer":');
    Object.assign(host.camera, { hasLight: true, light: true, hasSiren: true });
    expect(await ask({ cmd: 'GetWhiteLed', param: { channel: 0 } }, token)).toContain('"state":1');
    expect(await ask({ cmd: 'GetAudioAlarmV20', param: { channel: 0 } }, token)).toContain('"Audio":');
  } finally {
    stopping.abort();
  }
});
