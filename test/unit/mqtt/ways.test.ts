/**
 * The ways to a broker beside TCP and TLS: WebSocket, proxies, ALPN. How real ones behave: a proxy's name in https_proxy has the scheme
 * http or none (eclipse-paho/paho.mqtt.c#1329, paho.mqtt.golang#394), NO_PROXY counts (paho.mqtt.c#1473), the proxy looks the broker up
 * (Azure/azure-iot-sdk-csharp#1063), proxies ask for a login (paho.mqtt.java#419), servers of WebSocket want exactly one subprotocol
 * (shamblett/mqtt_client#274, njouanin/hbmqtt#38), and AWS chooses by ALPN (greengrass-nucleus#1662).
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import type { BrokerOptions } from '../../../src/mqtt/broker.ts';
import { type Proxy, proxyOfEnvironment, readProxy } from '../../../src/platform/proxy.ts';
import { openSession, type Session } from '../../../src/mqtt/session.ts';
import { texts } from '../../../src/mqtt/texts.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startMicrosocks, startTinyproxy } from '../../support/brokers/proxies.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { withDirectory } from '../../support/temporary.ts';

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function session(url: string, changes: Partial<BrokerOptions> = {}): Promise<Session> {
  const opened = await openSession(
    {
      broker: brokerOptions(url, changes),
      client_id: `way-${Math.floor(performance.now() * 1_000)}`,
      protocol: '5',
      session_expiry_s: 0,
      receive_maximum: 16,
      packet_bytes_max: 258 * 1024,
      onMessage: async () => true,
      onOversize: () => undefined,
    },
    new AbortController().signal,
  );
  onTestFinished(async () => opened.end());
  return opened;
}

/** Carries messages of both sizes there, and knows its ends. */
async function expectToCarry(it_is: Session): Promise<void> {
  for (const payload of ['small', 'x'.repeat(200_000)])
    expect(await it_is.publishAndWait({ topic: 'way', payload, retain: false })).toMatchObject({
      reason: '',
    });
  expect(it_is.endpoints).toEqual({ local_ip: '127.0.0.1', remote_ip: '127.0.0.1' });
}

const proxyAt = (kind: Proxy['kind'], port: number, login = {}): Proxy => ({
  kind,
  host: '127.0.0.1',
  port,
  ...login,
});

describe.skipIf(peerMissing('mosquitto', 'openssl', 'tinyproxy', 'microsocks'))('a session', () => {
  it('runs over WebSocket, with and without TLS', async () => {
    await withDirectory(async (dir) => {
      const { ca, server } = await makeCertificates(dir, 'kit');
      const [plain, secure] = [await freePort(), await freePort()];
      const tls = [`cafile ${ca}`, `certfile ${server.cert}`, `keyfile ${server.key}`];
      const broker = await startMosquitto({
        conf: [
          `listener ${plain} 127.0.0.1`,
          'protocol websockets',
          `listener ${secure} 127.0.0.1`,
          'protocol websockets',
          ...tls,
        ],
      });
      onTestFinished(async () => broker.stop());
      await expectToCarry(await session(`ws://127.0.0.1:${plain}/mqtt`));
      const text = await readFile(ca, 'utf8');
      await expectToCarry(await session(`wss://localhost:${secure}/mqtt`, { ca: text }));
      await expect(session(`wss://localhost:${secure}/mqtt`)).rejects.toThrow('not trusted');
      const subprotocol = { subprotocol: 'amqp', headers: {} };
      await expect(session(`ws://127.0.0.1:${plain}/mqtt`, { websocket: subprotocol })).rejects.toMatchObject(
        {
          stage: 'unreachable',
        },
      );
    });
  });

  it('runs through proxies with a login, and says what a proxy refuses', async () => {
    await withDirectory(async (dir) => {
      const login = { username: 'kit', password: 'p:w/d%41' };
      const { ca, server } = await makeCertificates(dir, 'kit');
      const broker = await startMosquitto({ tls: { ca, pair: server } });
      const tinyproxy = await startTinyproxy(dir, { login: { username: 'kit', password: 'secret' } });
      const narrow = await startTinyproxy(dir, { ports: [443] });
      const socks = await startMicrosocks(login);
      for (const each of [broker, tinyproxy, narrow, socks]) onTestFinished(async () => each.stop());
      const trust = { ca: await readFile(ca, 'utf8') };
      const through = async (proxy: Proxy): Promise<Session> => session(broker.url, { ...trust, proxy });
      await expectToCarry(
        await through(proxyAt('http', tinyproxy.port, { username: 'kit', password: 'secret' })),
      );
      await expectToCarry(await through(proxyAt('socks5', socks.port, login)));

      await expect(through(proxyAt('http', tinyproxy.port))).rejects.toThrow(
        /answered 407 .*broker\.proxy_username/,
      );
      await expect(through(proxyAt('http', narrow.port))).rejects.toThrow(
        /answered 403 .*allow connections to this host and port/,
      );
      await expect(through(proxyAt('socks5', socks.port, { ...login, password: 'wrong' }))).rejects.toThrow(
        /made no connection to localhost:\d+ \(.*\); check broker\.proxy/,
      );
      await expect(through(proxyAt('http', socks.port))).rejects.toThrow(/not answer as an HTTP proxy/);
      await expect(through(proxyAt('http', await freePort()))).rejects.toThrow('connection refused');
    });
  });

  it('runs through a proxy that is itself reached over TLS', async () => {
    await withDirectory(async (dir) => {
      const { ca, server } = await makeCertificates(dir, 'kit');
      const broker = await startMosquitto();
      const tinyproxy = await startTinyproxy(dir);
      for (const each of [broker, tinyproxy]) onTestFinished(async () => each.stop());
      const pair = { cert: await readFile(server.cert), key: await readFile(server.key) };
      const port = await listening(
        createTlsServer(pair, (client) => {
          const inner = connect(tinyproxy.port, '127.0.0.1');
          client.pipe(inner).pipe(client);
          for (const each of [client, inner]) each.on('error', () => undefined);
        }),
      );
      // The test's authority is not one of the system: that it is refused shows that the handshake was made.
      expect(ca).toContain(dir);
      const proxy: Proxy = { kind: 'https', host: 'localhost', port };
      await expect(session(broker.url, { proxy })).rejects.toThrow('not trusted');
    });
  });
});

describe('a proxy', () => {
  const proxyThat = async (answer: string): Promise<number> =>
    listening(
      createServer((socket) => {
        socket.on('error', () => undefined).once('data', () => socket.end(`HTTP/1.1 ${answer}\r\n\r\n`));
      }),
    );

  // Azure/iotedge#857: NTLM; aws/aws-iot-device-sdk-cpp-v2#365: Digest
  it.each([
    ['Basic realm="p"', {}, 'it requires a login; set broker.proxy_username'],
    ['Basic realm="p"', { username: 'kit', password: 'x' }, 'it does not accept the login; correct'],
    ['NTLM\r\nProxy-Authenticate: Negotiate', { username: 'kit', password: 'x' }, 'by NTLM or Negotiate,'],
    ['Digest realm="p", nonce="1", qop="auth"', {}, 'by Digest,'],
  ])('that asks for a login by %s is not asked again with %j', async (asked, login, words) => {
    const port = await proxyThat(
      `407 Proxy Authentication Required\r\nProxy-Authenticate: ${asked}\r\nContent-Length: 0`,
    );
    const proxy = proxyAt('http', port, login);
    await expect(session('mqtt://b.example:1883', { proxy })).rejects.toThrow(words);
  });

  it('has made the connection with any status of success', async () => {
    const proxy = proxyAt('http', await proxyThat('201 Established'));
    await expect(session('mqtt://b.example:1883', { proxy })).rejects.toThrow(texts.closed_early);
  });
});

describe('a server that is not the broker', () => {
  const answering = async (listener: RequestListener): Promise<string> => {
    const server = createHttpServer(listener);
    const port = await listening(server);
    onTestFinished(() => server.closeAllConnections());
    return `127.0.0.1:${port}`;
  };

  it('is named by what it answers to the request for a WebSocket', async () => {
    const missing = await answering((_asked, answer) => answer.writeHead(404).end());
    await expect(session(`ws://${missing}/mqtt`)).rejects.toThrow(
      '404 instead of opening a WebSocket; check the path',
    );
    const away = await answering((_asked, answer) => answer.writeHead(502).end());
    await expect(session(`ws://${away}/mqtt`)).rejects.toThrow(
      '502 instead of opening a WebSocket: it does not reach',
    );
    const login = 'http://login.hotel.example/';
    const portal = await answering((_asked, answer) => answer.writeHead(302, { location: login }).end());
    await expect(session(`ws://${portal}/mqtt`)).rejects.toThrow(texts.no_websocket(302, login));
  });

  // nori0428/mod_websocket#33, moquette-io/moquette#90: proxies before a broker drop the subprotocol
  it('is named where it opens a WebSocket of another subprotocol', async () => {
    const http = createHttpServer();
    const web = new WebSocketServer({ server: http, handleProtocols: () => false });
    onTestFinished(() => web.close());
    await expect(session(`ws://127.0.0.1:${await listening(http)}/mqtt`)).rejects.toThrow(
      texts.websocket_unclear('Server sent no subprotocol'),
    );
  });

  it('is named where it speaks HTTP on the port of MQTT', async () => {
    const web = await answering(() => undefined);
    await expect(session(`mqtt://${web}`)).rejects.toThrow(texts.speaks_http);
  });

  const ssh = 'SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7';
  const smtp = '220 mail.example.com ESMTP Postfix (Debian/GNU)';
  // Their first bytes, which may pass for the header of an MQTT packet: RFC 4253 4.2, RFC 5321 4.2, AMQP 0-9-1 4.2.2, RFC 8446 5.1
  it.each([
    ['mqtt', `${ssh}\r\n`, texts.speaks_otherwise(ssh)],
    ['mqtt', `${smtp}\r\n`, texts.speaks_otherwise(smtp)],
    [
      'mqtt',
      "<?xml version='1.0'?><stream:error/>",
      texts.speaks_otherwise("<?xml version='1.0'?><stream:error/>"),
    ],
    ['mqtt', 'AMQP\0\0\t\x01', texts.speaks_otherwise('AMQP')],
    ['mqtt', '\x15\x03\x01\0\x02\x02\x46', texts.speaks_tls],
    // Telnet
    ['mqtt', '\xff\xfd\x18', texts.not_mqtt('ff')],
    // What a proxy or a firewall, and a broker without TLS (hivemq/hivemq-mqtt-client#493), do with a protocol that is not theirs
    ['mqtt', '', texts.closed_early],
    ['mqtts', '', texts.cut.tls],
    ['ws', '', texts.cut.websocket],
    ['ws', '\x20\x02\0\0', texts.no_web_server],
  ])('is named by its own words: by %s %j', async (scheme, words, sentence) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(words, 'latin1'));
    });
    await expect(session(`${scheme}://127.0.0.1:${await listening(server)}`)).rejects.toThrow(sentence);
  });

  it('is given the time of an attempt, in each step of it', async () => {
    const mute = await listening(createServer((socket) => socket.on('error', () => undefined)));
    const short = { connect_timeout_ms: 300 };
    const proxy = proxyAt('http', mute);
    for (const [url, changes] of [
      [`ws://127.0.0.1:${mute}/mqtt`, {}],
      [`mqtts://127.0.0.1:${mute}`, {}],
      ['mqtt://broker.example:1883', { proxy }],
      ['mqtt://broker.example:1883', { proxy: { ...proxy, kind: 'socks5' } }],
      ['mqtt://broker.example:1883', { proxy: { ...proxy, kind: 'https' } }],
    ] as const)
      await expect(session(url, { ...changes, ...short })).rejects.toMatchObject({ stage: 'unreachable' });
  });
});

it.skipIf(peerMissing('openssl'))('TLS asks for the protocol and the name that are configured', async () => {
  await withDirectory(async (dir) => {
    const { ca, server } = await makeCertificates(dir, 'kit');
    const pair = { cert: await readFile(server.cert), key: await readFile(server.key) };
    const asked: unknown[] = [];
    const port = await listening(
      createTlsServer({ ...pair, ALPNProtocols: ['x-amzn-mqtt-ca'] }, (socket) => {
        asked.push([socket.alpnProtocol, 'servername' in socket && socket.servername]);
        socket.on('error', () => undefined).end();
      }),
    );
    const options = { ca: await readFile(ca, 'utf8'), alpn: ['x-amzn-mqtt-ca'], tls_name: 'localhost' };
    await expect(session(`mqtts://127.0.0.1:${port}`, options)).rejects.toThrow(texts.closed_early);
    expect(asked).toEqual([['x-amzn-mqtt-ca', 'localhost']]);
  });
});

describe('the proxy of the environment', () => {
  const found = (url: string, env: Record<string, string>): string | undefined =>
    proxyOfEnvironment(new URL(url), env);

  it.each([
    ['mqtts://b.example:8883', { HTTPS_PROXY: 'http://p:3128' }, 'http://p:3128'],
    ['wss://b.example/mqtt', { https_proxy: 'p:3128' }, 'p:3128'],
    ['mqtt://b.example:1883', { HTTPS_PROXY: 'http://p:3128' }, undefined],
    ['mqtt://b.example:1883', { http_proxy: 'http://p:3128' }, 'http://p:3128'],
    ['mqtts://b.example:8883', { ALL_PROXY: 'socks5h://p' }, 'socks5h://p'],
    ['mqtts://b.example:8883', { https_proxy: '', ALL_PROXY: 'socks5h://p' }, 'socks5h://p'],
    ['mqtts://localhost:8883', { https_proxy: 'p' }, undefined],
    ['mqtts://127.0.0.1:8883', { https_proxy: 'p' }, undefined],
    ['mqtts://b.example:8883', { https_proxy: 'p', no_proxy: '*' }, undefined],
    ['mqtts://b.example:8883', { https_proxy: 'p', NO_PROXY: 'localhost, .example' }, undefined],
    ['mqtts://b.example:8883', { https_proxy: 'p', NO_PROXY: 'b.example' }, undefined],
    ['mqtts://a.b.example:8883', { https_proxy: 'p', NO_PROXY: 'b.example' }, undefined],
    ['mqtts://ab.example:8883', { https_proxy: 'p', NO_PROXY: 'b.example' }, 'p'],
    ['mqtts://b.example:8883', { https_proxy: 'p', NO_PROXY: 'b.example:8883' }, undefined],
    ['mqtts://b.example:8883', { https_proxy: 'p', NO_PROXY: 'b.example:443' }, 'p'],
    ['mqtts://10.1.2.3:8883', { https_proxy: 'p', NO_PROXY: '10.0.0.0/8' }, undefined],
    ['mqtts://11.1.2.3:8883', { https_proxy: 'p', NO_PROXY: '10.0.0.0/8,10.0.0.0/99' }, 'p'],
    ['mqtts://[fd00::1]:8883', { https_proxy: 'p', NO_PROXY: 'fd00::/8' }, undefined],
  ])('of %s with %j is %s', (url, env, proxy) => {
    expect(found(url, env)).toBe(proxy);
  });

  it.each([
    ['http://p:3128', { kind: 'http', host: 'p', port: 3128 }],
    ['p:3128', { kind: 'http', host: 'p', port: 3128 }],
    ['https://p', { kind: 'https', host: 'p', port: 443 }],
    ['socks5h://u:p%40w@[::1]:9', { kind: 'socks5', host: '::1', port: 9, username: 'u', password: 'p@w' }],
    // apify/proxy-chain#89, delvedor/hpagent#120: a percent sign that was not encoded
    ['http://u:100%@p', { kind: 'http', host: 'p', port: 80, username: 'u', password: '100%' }],
    ['ftp://p', undefined],
    ['::', undefined],
  ])('is read from %s', (text, proxy) => {
    expect(readProxy(text)).toEqual(proxy);
  });
});
