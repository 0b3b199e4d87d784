/** One host that opens connections and never finishes a request: it is bounded, and others are answered. */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { networkOf } from '../../../../src/cloud/access/proxies.ts';
import { address_connections_max } from '../../../../src/cloud/http/server/http-server.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { texts } from '../../../../src/cloud/texts.ts';

let lab: ServiceLab;
const opened: Socket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
});
afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  await lab.stop();
});

const port = (): number => Number(new URL(lab.url).port);
function dial(localAddress: string): Socket {
  const socket = connect({ port: port(), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  opened.push(socket);
  return socket;
}
async function halfRequests(localAddress: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const socket = dial(localAddress);
    await once(socket, 'connect');
    socket.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n');
  }
}
async function ask(localAddress: string, agent: Agent | false = false): Promise<number | undefined> {
  const asked = request(lab.url, { path: '/ready', localAddress, agent });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}
const held = (address: string): number =>
  opened.filter((each) => !each.destroyed && each.readyState === 'open' && each.localAddress === address)
    .length;

describe('connections', () => {
  it('of one address have a limit: its oldest half request is closed, and it is logged once', async () => {
    await halfRequests('127.0.0.9', address_connections_max * 3);
    await eventually('the rest is cut', () => held('127.0.0.9') === address_connections_max);
    expect(await ask('127.0.0.9')).toBe(200);
    expect(await ask('127.0.0.2')).toBe(200);
    expect(lab.log.at('warn')).toEqual([texts.log_connections]);
  });

  it.each(['127.0.0.9', '127.0.0.1'])(
    'of %s that send 1,100 half requests do not disturb another client, nor its open connection',
    async (attacker) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => agent.destroy());
      expect(await ask('127.0.0.2', agent)).toBe(200);
      await halfRequests(attacker, 1_100);
      for (let n = 0; n < 5; n += 1) expect(await ask('127.0.0.2', agent)).toBe(200);
      expect(await ask('127.0.0.3')).toBe(200);
    },
  );

  it('that are closed in the middle of a body are no error of the service', async () => {
    for (let n = 0; n < 5; n += 1) {
      const socket = dial('127.0.0.9');
      await once(socket, 'connect');
      socket.write(
        'POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 600\r\nExpect: 100-continue\r\n\r\n{',
      );
      // Its 100 Continue: the service reads the body.
      await once(socket, 'data');
      socket.destroy();
      await once(socket, 'close');
    }
    expect(await ask('127.0.0.2')).toBe(200);
    expect(lab.log.at('error')).toEqual([]);
  });

  it('of many addresses: under pressure the oldest half request of all is closed, and others are answered', async () => {
    for (let n = 2; n < 20; n += 1) await halfRequests(`127.0.1.${n}`, address_connections_max);
    expect(await ask('127.0.0.2')).toBe(200);
    const all = opened.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length;
    expect(all).toBeLessThanOrEqual(768);
  });

  it('are not counted once they are answered and closed', async () => {
    for (let n = 0; n < address_connections_max * 2; n += 1) expect(await ask('127.0.0.9')).toBe(200);
    expect(lab.log.at('warn')).toEqual([]);
  });
});

describe('networkOf', () => {
  it.each([
    ['::ffff:10.0.0.5', '10.0.0.5'],
    ['10.0.0.5', '10.0.0.5'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1:2:3:4', '2001:db8:0:0'],
    ['2001:db8::7', '2001:db8:0:0'],
    ['2001:db8:1:2::', '2001:db8:1:2'],
    ['fd00:1:2::9', 'fd00:1:2:0'],
    ['fd00:1:2:0:3:4:5:6', 'fd00:1:2:0'],
    ['::a:b:c:d', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '::1'],
    [undefined, ''],
  ])('%s counts as %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
