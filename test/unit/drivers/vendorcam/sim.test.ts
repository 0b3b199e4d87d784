/** The simulated camera of the demo. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { aesEncrypt, aesKey } from '../../../../drivers/vendorcam/push/cipher.ts';
import { classes, frameBytes, FrameReader } from '../../../../drivers/vendorcam/push/wire.ts';
import { SimPush } from '../../../../drivers/vendorcam/sim/push.ts';
import { SimSessions } from '../../../../drivers/vendorcam/sim/sessions.ts';
import { SimHost, startSimHost } from '../../../../drivers/vendorcam/sim/sim-host.ts';
import { eventually } from '../../../support/eventually.ts';
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

it('refuses what it does not know on its port for events, so that another client does not wait', async () => {
  const push = new SimPush(new SimSessions(), []);
  await push.listen();
  const socket = connect(push.port, '127.0.0.1');
  try {
    const request = { command: 80, id: 7, status: 0, class: classes.request };
    socket.write(frameBytes(request));
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    expect(new FrameReader(1_000).take(bytes)).toMatchObject([{ command: 80, id: 7, status: 400 }]);
  } finally {
    socket.destroy();
    await push.close();
  }
});

it('plays and ends its siren on its port for events, as another client asks it', async () => {
  const host = new SimHost();
  host.camera.hasSiren = true;
  const push = new SimPush(host.sessions, host.channels);
  await push.listen();
  const socket = connect(push.port, '127.0.0.1');
  try {
    await eventually('it is connected', () => push.clients.size === 1);
    const [client] = push.clients;
    const key = aesKey(client?.nonce ?? '', host.sessions.password);
    const reader = new FrameReader(1_000);
    const play = async (channel: number, on: number) => {
      const xml = `\n<?xml version="1.0"?><body><audioPlayInfo><channelId>${channel}</channelId><onOff>${on}</onOff></audioPlayInfo></body>`;
      const payload = aesEncrypt(Buffer.from(xml), key);
      socket.write(frameBytes({ command: 263, id: 9, status: 0, class: classes.request, payload }));
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      return [reader.take(bytes)[0]?.status, host.camera.siren];
    };
    expect(await play(0, 1)).toEqual([200, true]);
    expect(await play(1, 0)).toEqual([400, true]);
    expect(await play(0, 0)).toEqual([200, false]);
  } finally {
    socket.destroy();
    await push.close();
  }
});

it('is gone for a moment after its restart command, and no session exists afterwards', async () => {
  const stopping = new AbortController();
  const port = await freePort();
  await startSimHost({ password: 'secret', name: 'Yard' }, port, stopping.signal);
  const ask = asker(port);
  try {
    const token = await login(ask);
    expect(await ask({ cmd: 'Reboot' }, token)).toContain('"rspCode":200');
    await eventually('it is gone', async () =>
      ask({ cmd: 'GetDevInfo' }, token).then(
        () => false,
        () => true,
      ),
    );
    await eventually(
      'it is back',
      async () =>
        ask({ cmd: 'GetDevInfo' }, token).then(
          () => true,
          () => false,
        ),
      20_000,
    );
    expect(await ask({ cmd: 'GetDevInfo' }, token)).toContain('please login first');
  } finally {
    stopping.abort();
  }
});
