/** One host holds 1,100 half-sent requests; another one asks meanwhile. Prints how long that one waits. */
import { connect, type Socket } from 'node:net';
import { request } from 'node:http';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { kit_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { startServiceLab } from '../../support/service/service-lab.ts';
import { numberOf } from '../support/numbers.ts';

const half_open = numberOf('FAULTS_HALF_OPEN', 1_100);
const asked = 100;
/** What the service closed is opened again this often. */
const again_ms = 5_000;
const attacker = '127.0.0.2';
const client = '127.0.0.3';

it('answers another host while one host holds 1,100 half-sent requests', async () => {
  const lab = await startServiceLab(kit_id);
  const held = new Set<Socket>();
  const ends: (() => void)[] = [];
  try {
    await lab.publish(channels.state, samples['kitState'] ?? {});
    const { port } = new URL(lab.url);
    const hold = (): void => {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: attacker });
      // The service closes those above the limit of an address.
      socket.on('error', () => undefined);
      socket.on('connect', () => socket.write('GET /api/kits HTTP/1.1\r\nHost: localhost\r\nX-Half'));
      socket.on('close', () => {
        open -= 1;
      });
      open += 1;
      made += 1;
      held.add(socket);
      socket.once('close', () => held.delete(socket));
    };
    let open = 0;
    let made = 0;
    const fill = (): void => {
      for (let n = open; n < half_open; n += 1) hold();
    };
    const again = setInterval(fill, again_ms);
    ends.push(() => clearInterval(again));
    fill();
    await eventually('the attacker is connected', () =>
      [...held].some(({ readyState }) => readyState === 'open'),
    );
    const times_ms: number[] = [];
    const ask = async (): Promise<number> => {
      const begun_ms = performance.now();
      const sent = request(`${lab.url}/api/kits`, {
        agent: false,
        localAddress: client,
        headers: { 'x-api-key': lab.key },
      });
      sent.end();
      const [answer] = (await once(sent, 'response')) as [{ statusCode: number; resume: () => void }];
      answer.resume();
      times_ms.push(performance.now() - begun_ms);
      return answer.statusCode;
    };
    const statuses: number[] = [];
    for (let n = 0; n < asked; n += 1) statuses.push(await ask());
    const sorted = times_ms.toSorted((a, b) => a - b);
    console.log(
      `${asked} requests beside ${half_open} half-open ones (${made} connections made): p50 ${sorted[asked / 2]?.toFixed(1)} ms, slowest ${sorted.at(-1)?.toFixed(1)} ms`,
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
  } finally {
    for (const end of ends) end();
    for (const socket of held) socket.destroy();
    await lab.stop();
  }
});
