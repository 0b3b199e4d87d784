/** Answers that no SNMP agent should send. One of them ends its own session and nothing else. */
import { createSocket } from 'node:dgram';
import { afterEach, describe, expect, it } from 'vitest';
import { limits } from '../../../../drivers/vendorradio/limits.ts';
import { openSnmp, type SnmpLogin } from '../../../../drivers/vendorradio/snmp/snmp-session.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { type SnmpAnswer, snmpAnswers, startFakeSnmpAgent } from '../../../fakes/fake-snmp-agent.ts';
import { integer, response_pdu, tlv, types, varbind } from '../../../support/drivers/snmp-bytes.ts';

const sys_name = '1.3.6.1.2.1.1.5.0';
const sys_name_bytes = [0x2b, 6, 1, 2, 1, 1, 5, 0];
const readers: SnmpLogin = { version: '2c', community: 'readers' };
const nobody: SnmpLogin = { version: '3', username: 'watcher', auth: undefined, priv: undefined };

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function session(answer: SnmpAnswer, login: SnmpLogin = readers, about: Partial<typeof limits> = {}) {
  const agent = await startFakeSnmpAgent(answer);
  const opened = openSnmp('127.0.0.1', agent.port, login, { limits: { ...limits, ...about } });
  stops.push(agent.stop, opened.close);
  return { agent, get: async () => opened.get([sys_name]) };
}

describe('an SNMP session with a hostile agent', () => {
  it.each([
    ['a report in version 2c', snmpAnswers.reportInVersion2],
    ['a signed message of version 3 in version 2c', snmpAnswers.signedVersion3],
    ['an encrypted message of version 3 in version 2c', snmpAnswers.encryptedVersion3],
    ['noise', snmpAnswers.noise],
  ])('ends its request, and not the process, after %s', async (_name, answer) => {
    const { get } = await session(answer);
    await expect(get()).rejects.toBeInstanceOf(DeviceUnreachable);
  });

  it('stops asking an agent that requests every request again', async () => {
    const { agent, get } = await session(snmpAnswers.endlessReports, nobody, { snmp_answer_ms: 300 });
    await expect(get()).rejects.toBeInstanceOf(DeviceUnreachable);
    await expect(get()).rejects.toBeInstanceOf(DeviceUnreachable);
    const { requests } = agent.seen;
    expect(requests).toBeGreaterThan(1);
    // A request that was under way may still arrive.
    await new Promise((resolve) => setImmediate(resolve));
    expect(agent.seen.requests).toBeLessThanOrEqual(requests + 1);
  });

  it('ignores noise from any other host', async () => {
    const stranger = createSocket('udp4');
    stops.push(() => stranger.close());
    let asked = 0;
    const { agent, get } = await session(
      ({ opening, id }) => {
        asked += 1;
        if (asked > 1)
          return tlv(types.sequence, opening, response_pdu(id, [varbind(sys_name_bytes, integer(7))]));
        // An answer to nothing: the request stands while the noise comes, and is repeated after its timeout.
        stranger.send('noise', agent.seen.client?.port ?? 0, '127.0.0.1');
        return tlv(types.sequence, opening, response_pdu(Buffer.from([1])));
      },
      readers,
      { snmp_timeout_ms: 300, snmp_retries: 3 },
    );
    expect((await get()).get(sys_name)).toBe(7);
    expect(asked).toBeGreaterThan(1);
  });
});
