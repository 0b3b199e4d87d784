/** Replies byte by byte, as no library of ours writes them: forms of HTTP, encodings, namespaces and logins of cameras. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { type CameraLab, cameraLab, said } from '../../../support/cameras/onvif-lab.ts';

const soap = (body: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://www.w3.org/2003/05/soap-envelope" xmlns:tds="http://www.onvif.org/ver10/device/wsdl"><SOAP-ENV:Body>${body}</SOAP-ENV:Body></SOAP-ENV:Envelope>`;
const information =
  '<tds:GetDeviceInformationResponse><tds:Manufacturer>Müller</tds:Manufacturer><tds:Model>IPC</tds:Model><tds:FirmwareVersion>1</tds:FirmwareVersion><tds:SerialNumber>c3a1</tds:SerialNumber></tds:GetDeviceInformationResponse>';
/** What it does not support is a fault with the status 200, as some send it. */
const fault =
  '<SOAP-ENV:Fault><SOAP-ENV:Code><SOAP-ENV:Value>SOAP-ENV:Receiver</SOAP-ENV:Value><SOAP-ENV:Subcode><SOAP-ENV:Value>ter:ActionNotSupported</SOAP-ENV:Value></SOAP-ENV:Subcode></SOAP-ENV:Code></SOAP-ENV:Fault>';
const answers: ReadonlyMap<string, string> = new Map([
  ['GetServices', '<tds:GetServicesResponse/>'],
  ['GetDeviceInformation', information],
]);

/** Writes the reply with the description of the camera. */
type Sending = (socket: Socket, bytes: Buffer) => void;
const head = (length: number, ...lines: readonly string[]): string =>
  ['HTTP/1.1 200 OK', `Content-Length: ${length}`, ...lines, '', ''].join('\r\n');
const plain: Sending = (socket, bytes) => {
  socket.write(head(bytes.length, 'Connection: close'));
  socket.end(bytes);
};

let lab: CameraLab;
const stops: (() => Promise<void>)[] = [];
beforeEach(async () => {
  lab = await cameraLab();
});
afterEach(async () => {
  await lab.stop();
  for (const stop of stops.splice(0)) await stop();
});

interface Raw {
  readonly send?: Sending;
  readonly encode?: (xml: string) => Buffer;
  /** The answer to a request without a good login, by the head of the request. */
  readonly refuse?: (head: string) => string | undefined;
}

/** A camera with its device service alone. */
async function rawCamera({
  send = plain,
  encode = (xml) => Buffer.from(xml),
  refuse = () => undefined,
}: Raw) {
  const asked: string[] = [];
  const answer = (socket: Socket, request: string, body: string): void => {
    const name = /<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)/u.exec(body)?.[1] ?? '';
    asked.push(name);
    const refusal = refuse(request);
    const xml = soap(answers.get(name) ?? fault);
    if (refusal !== undefined) socket.end(refusal);
    else if (name === 'GetDeviceInformation') send(socket, encode(xml));
    else plain(socket, Buffer.from(xml));
  };
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const [request = '', body] = text.split('\r\n\r\n');
      if (body === undefined || body.length < Number(/content-length: (\d+)/iu.exec(request)?.[1] ?? 0))
        return;
      text = '';
      answer(socket, request, body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(
    async () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  );
  const at = server.address();
  return { port: typeof at === 'object' && at !== null ? at.port : 0, asked };
}

/** What the driver reads of such a camera. */
async function readBy(raw: Raw): Promise<object | null> {
  const { port } = await rawCamera(raw);
  const { outbox } = lab.run({ cameras: [{ name: 'raw', host: '127.0.0.1', port }] });
  const draft = await outbox.until(({ data }) => data !== null && 'vendor' in data);
  return draft.data;
}

/** Chunks of 200 bytes, each in a packet of its own. */
const inChunks: Sending = (socket, bytes) => {
  const chunks = Array.from({ length: Math.ceil(bytes.length / 200) }, (_, at) =>
    bytes.subarray(at * 200, (at + 1) * 200),
  );
  const parts = [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    ...chunks.flatMap((each) => [`${each.length.toString(16)};a=b\r\n`, each, '\r\n']),
    '0\r\nX: y\r\n\r\n',
  ];
  const next = (): void => {
    const part = parts.shift();
    if (part === undefined) socket.end();
    else socket.write(part, () => setImmediate(next));
  };
  next();
};
const after =
  (lines: (length: number) => string, how: 'end' | 'stay'): Sending =>
  (socket, bytes) => {
    socket.write(lines(bytes.length));
    socket.write(bytes);
    if (how === 'end') socket.end();
  };
const inTwo =
  (lines: (length: number) => string, first: string): Sending =>
  (socket, bytes) => {
    socket.write(first, () => {
      setTimeout(() => {
        socket.write(lines(bytes.length).slice(first.length));
        socket.end(bytes);
      }, 20);
    });
  };

describe('a reply', () => {
  it.each<[string, Sending]>([
    ['in many chunks with a trailer', inChunks],
    ['without a length', after(() => 'HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n', 'end')],
    ['of HTTP/1.0', after(() => 'HTTP/1.0 200 OK\r\nServer: gSOAP/2.8\r\n\r\n', 'end')],
    ['behind 100 Continue', after((length) => `HTTP/1.1 100 Continue\r\n\r\n${head(length)}`, 'end')],
    ['on a connection that stays open', after((length) => head(length, 'Connection: Keep-Alive'), 'stay')],
    // home-assistant/core#38673
    [
      'with a blank before the colon of a header',
      after((length) => head(length, 'X-Frame-Options : SAMEORIGIN', 'Connection: close'), 'end'),
    ],
    // home-assistant/core#151745
    [
      'with the value of a header in a line of its own',
      after((length) => head(length, 'Last-Modified:', 'Tue, 12 Jun 2012 01:56:34 GMT', 'no colon'), 'end'),
    ],
    [
      'with a head in two packets',
      inTwo((length) => head(length, 'Connection: close'), 'HTTP/1.1 200 OK\r\nCont'),
    ],
    ['with line feeds alone', after((length) => head(length).replaceAll('\r', ''), 'end')],
    ['with a status line without words', after((length) => head(length).replace(' OK', ''), 'end')],
    ['with a length that is too long', after((length) => head(length + 2), 'end')],
    ['without a length on a connection that stays open', after(() => 'HTTP/1.1 200 OK\r\n\r\n', 'stay')],
  ])('is read %s', async (_, send) => {
    expect(await readBy({ send })).toMatchObject({ vendor: 'Müller', model: 'IPC' });
  });

  const wide = (xml: string, mark = '\uFEFF'): Buffer =>
    Buffer.from(`${mark}${xml.replace('UTF-8', 'UTF-16')}`, 'utf16le');
  it.each<[string, (xml: string) => Buffer]>([
    ['UTF-16 with a mark', wide],
    ['UTF-16 with the bytes in the other order', (xml) => wide(xml).swap16()],
    ['UTF-16 without a mark', (xml) => wide(xml, '')],
    ['ISO-8859-1', (xml) => Buffer.from(xml.replace('UTF-8', 'ISO-8859-1'), 'latin1')],
    ['UTF-8, whatever it declares', (xml) => Buffer.from(xml.replace('UTF-8', 'GB2312'))],
    [
      'UTF-8 with a comment and CDATA',
      (xml) => Buffer.from(xml.replace('<tds:Model>', '<!-- <a> -->$&').replace('IPC', '<![CDATA[IPC]]>')),
    ],
  ])('is read in %s', async (_, encode) => {
    expect(await readBy({ encode })).toMatchObject({ vendor: 'Müller', model: 'IPC' });
  });
});

describe('a login by HTTP digest', () => {
  it.each([
    ['', 'Content-Length: 0\r\n\r\n'],
    // home-assistant/core#43376
    [', and which cuts the pages of its challenges off', 'Content-Length: 973\r\n\r\n<html>'],
  ])(
    'follows a camera whose nonces are stale after one use, without a quality and beside Basic%s',
    async (_, page) => {
      const fake = await startFakeCamera({ auth: 'digest' });
      stops.push(async () => fake.stop());
      const { username, password } = fake.settings;
      const md5 = (text: string): string => createHash('md5').update(text).digest('hex');
      let nonce = 0;
      const { port, asked } = await rawCamera({
        refuse: (request) => {
          const field = (name: string): string =>
            new RegExp(`${name}="([^"]*)"`, 'u').exec(request)?.[1] ?? '';
          const secret = md5(`${username}:Login to IPC, 1:${password}`);
          const expected = md5(`${secret}:n${nonce}:${md5(`POST:${field('uri')}`)}`);
          const isGood = field('response') === expected;
          nonce += 1;
          if (isGood) return undefined;
          const digest = `Digest realm="Login to IPC, 1", nonce="n${nonce}", stale=TRUE`;
          const challenges = ['Basic realm="IPC"', digest].map((each) => `WWW-Authenticate: ${each}\r\n`);
          return `HTTP/1.1 401 Unauthorized\r\n${challenges.join('')}${page}`;
        },
      });
      const { outbox } = lab.run({ cameras: [{ ...(await lab.entry(fake)), port, auth: 'digest' }] });
      await outbox.until(said('asset_status', (data) => data['status'] === 'online'));
      expect(asked.filter((name) => name === 'GetDeviceInformation').length).toBeLessThanOrEqual(2);
    },
  );
});

it('a redirect is not followed, and named with its target', async () => {
  const { port, asked } = await rawCamera({
    refuse: () =>
      'HTTP/1.1 302 Found\r\nLocation: https://127.0.0.2/onvif\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
  });
  const { log } = lab.run({ cameras: [{ name: 'raw', host: '127.0.0.1', port }] });
  const sentence = texts.redirected(302, 'https://127.0.0.2/onvif');
  await eventually('it is logged', () =>
    log.lines.some(({ facts }) => String(facts['reason']).includes(sentence)),
  );
  expect(asked).not.toEqual([]);
});
