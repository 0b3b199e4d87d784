/** Whatever address a device reports: no driver lets it lead to another host, to this machine, or to an instruction. */
import { readdirSync, readFileSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { Part } from '../../../drivers/mavlink/vehicles/part.ts';
import { readStream } from '../../../drivers/onvif/camera/media.ts';
import { readMatches } from '../../../drivers/onvif/discovery.ts';
import { readEnvelope } from '../../../drivers/onvif/soap/envelope.ts';
import { failure } from '../../../drivers/onvif/soap/soap.ts';
import { reachable, type Soap } from '../../../drivers/onvif/soap/soap.ts';
import { streamOf } from '../../../drivers/vendorcam/channels/describe.ts';
import { vendorcamOptions } from '../../../drivers/vendorcam/options.ts';
import { AddressPolicy } from '../../../src/cloud/webhooks/address-policy.ts';

const own = '10.1.1.9';
const thief = '192.0.2.66';
const connection = {
  host: own,
  port: 80,
  path: '/onvif/device_service',
  secure: false,
  fingerprint: undefined,
  username: 'kit',
  password: 'secret',
};

async function onvifStream(address: string): Promise<string | undefined> {
  const text = address.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const body = `<GetStreamUriResponse><MediaUri><Uri>${text}</Uri></MediaUri></GetStreamUriResponse>`;
  const reading = readEnvelope(`<Envelope><Body>${body}</Body></Envelope>`);
  if (reading.kind !== 'read') return undefined;
  const soap: Soap = {
    connection,
    login: 'none',
    call: async () => ({ kind: 'reply', body: reading.body, bytes: 0, local_address: own }),
    fetch: async () => failure('unreachable', 'no file'),
    close: () => undefined,
  };
  const profiles = [{ token: 'p', encoding: 'H264', pixels: 1e6, hasPtz: false }];
  const stream = await readStream(soap, `http://${own}/media`, { service: 'media', profiles });
  return stream && 'rtsp_url' in stream ? (stream.rtsp_url ?? undefined) : undefined;
}

function vendorStream(address: string): string | undefined {
  const [options] = vendorcamOptions.parse({
    hosts: [{ name: 'a', host: own, username: 'kit', password_file: '/p' }],
  }).hosts;
  if (!options) throw new Error('no host');
  const reply = { value: { rtspUrl: { mainStream: address, subStream: address } } };
  return streamOf(reply, 0, { options, password: 'secret', rtsp_port: 554 })?.rtsp_url ?? undefined;
}

function vehicleStream(uri: string): string | undefined {
  const urls: (string | undefined)[] = [];
  const part = new Part({
    parent_key: 'mavlink:1',
    parent_name: 'Falcon',
    compid: 100,
    part: 'camera',
    type: 'camera',
    now_ms: 0,
    offline_after_ms: 600_000,
    announce: ({ rtsp_url }) => {
      urls.push(rtsp_url ?? undefined);
      return {
        publish: () => undefined,
        setPosition: () => undefined,
        setOnline: () => undefined,
        setHealth: () => undefined,
        remove: () => undefined,
      };
    },
    request: () => undefined,
    onRefused: () => undefined,
  });
  const size = { framerate: 30, bitrate: 0, resolution_h: 1920, resolution_v: 1080, rotation: 0, hfov: 0 };
  const about = { flags: 1, stream_id: 1, count: 1, type: 0, name: '', encoding: 1, camera_device_id: 0 };
  part.receive({ name: 'VIDEO_STREAM_INFORMATION', fields: { ...size, ...about, uri } }, 1);
  return urls.at(-1);
}

function discovered(address: string): string | undefined {
  const text = address.replaceAll('<', '&lt;');
  const xml = `<d:ProbeMatch><a:Address>urn:1</a:Address><d:XAddrs>${text}</d:XAddrs></d:ProbeMatch> urn`;
  const [found] = readMatches(xml, 'urn', own);
  return found && `http://${found.host}:${found.port}${found.path}`;
}

type Follow = (address: string) => string | undefined | Promise<string | undefined>;
/** Every place in which a driver makes an address of what a device reports: `file` is the source. */
const followers: readonly (readonly [what: string, file: string, follow: Follow])[] = [
  ['onvif, service', 'onvif/soap/soap.ts', (address) => reachable(address, connection)],
  ['onvif, stream', 'onvif/camera/media.ts', onvifStream],
  ['onvif, discovery', 'onvif/discovery.ts', discovered],
  ['vendorcam, stream', 'vendorcam/channels/describe.ts', vendorStream],
  ['mavlink, stream of a vehicle', 'mavlink/vehicles/part.ts', vehicleStream],
];

const own_addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
/** This machine in every spelling. A vehicle may have a camera at any other address: its own network is not configured. */
const here = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '0.0.0.0',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  'localhost',
  'localhost.',
  'LOCALHOST',
  'api.localhost',
  'ip6-localhost',
  'ip6-loopback',
  hostname(),
  `${hostname()}.local`,
  ...own_addresses
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .flatMap(({ address }) => [address, `[::ffff:${address}]`]),
].flatMap((host) => [host, host.toLowerCase()]);
const forms = [
  'S://H/x',
  'S://H:19999/x',
  'S:H/x',
  'S:@H/x',
  'S:///H/x',
  '//H/x',
  '/\\H/x',
  '@H/x',
  'x:@H:19999/stolen',
  `S://${own}@H/x`,
  `S://${own}:80@H/x`,
  `S://H\\@${own}/x`,
  `S://${own}/x#@H/`,
  `S://${own}/x#transport=ws://H/rtsp`,
  `S://${own}\u0000@H/x`,
  `S://${own}\r\nHost: H`,
  `S://H%2f@${own}/x`,
  'file://H/etc/passwd',
  'exec://H/x',
  'ws://H/x',
  'constructor://H/x',
  `constructor://${own}/x`,
];

describe.each(followers)('%s', (_what, file, follow) => {
  const isVehicle = file.startsWith('mavlink/');
  const hosts = isVehicle ? here : [thief, ...here];
  const reported = hosts.flatMap((host) =>
    forms.flatMap((form) =>
      ['http', 'rtsp'].map((scheme) => form.replaceAll('H', host).replace(/^S/u, scheme)),
    ),
  );

  it('leads nowhere but to the configured host, or to a camera that is not this machine', async () => {
    const led = await Promise.all(
      reported.map(async (address) => {
        const used = await follow(address);
        if (used === undefined) return [];
        const led = URL.parse(used);
        if (!led) return [`${address} became ${used}, which is no address`];
        const { hostname: host, hash, username } = led;
        const isFine = isVehicle ? !here.includes(host.toLowerCase()) : host === own;
        const isOwnLogin = username === '' || username === 'kit';
        return isFine && hash === '' && isOwnLogin ? [] : [`${address} led to ${used}`];
      }),
    );
    expect(led.flat()).toEqual([]);
  });

  it('follows an ordinary address', async () => {
    const scheme = file.includes('soap') || file.includes('discovery') ? 'http' : 'rtsp';
    expect(new URL((await follow(`${scheme}://${own}/live?x=1`)) ?? '').hostname).toBe(own);
  });
});

/** Who connects to what a name server answers, and which addresses each of them reaches. */
const resolvers: readonly (readonly [what: string, reaches: (address: string) => boolean])[] = [
  ['HTTP checks of links', isPublicIp],
  ['webhooks', (address) => new AddressPolicy({ allow: [], allow_http: true }).reaches(address)],
];

describe.each(resolvers)('%s', (_what, reaches) => {
  it('go to no inner address that a name server answers, nor to one inside an address of IPv6', () => {
    const inner = ['127.0.0.1', '0.0.0.0', '10.1.1.9', '100.64.0.1', '169.254.169.254', '172.31.0.1']
      .concat(['192.0.0.8', '192.168.1.1', '224.0.0.1', '255.255.255.255'])
      .flatMap((address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        const hex = [a * 256 + b, c * 256 + d].map((word) => word.toString(16)).join(':');
        return [
          address,
          `::${address}`,
          `::ffff:${address}`,
          `::ffff:${hex}`,
          `64:ff9b::${address}`,
          `64:ff9b::${hex}`,
          `64:ff9b:1::${hex}`,
          `2002:${hex}::1`,
        ];
      })
      .concat(['::', '::1', 'fc00::1', 'fd00:1::1', 'fe80::1', 'fec0::1', 'ff02::1', '2001:0:a01:109::1'])
      .concat(['', 'localhost', '127.1', '2130706433', 'fe80::1%lo', '[::1]']);
    expect(inner.filter(reaches)).toEqual([]);
  });

  it('go to addresses of the internet', () => {
    const outer = ['1.1.1.1', '8.8.8.8', '2606:4700:4700::1111', '2a00:1450:400a::200e'];
    expect(outer.filter((address) => !reaches(address))).toEqual([]);
  });
});

describe('The sources', () => {
  const root = join(import.meta.dirname, '../../../');
  const sources = (folder: string): readonly string[] =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/(?:^|\/)sim\//u.test(name) && !name.startsWith('console/'))
      .map((name) => join(folder, name));
  const text = (file: string): string => readFileSync(join(root, file), 'utf8');

  it('of every driver make no address of what a device reports in another place', () => {
    // The addresses of servers that the configuration names, that of a request that `reachable` allowed, and a path on the device itself.
    const configured = [
      'speedtest/speedtest.ts',
      'onvif/soap/line.ts',
      'links/options.ts',
      'vendorradio/ubus/ubus.ts',
    ];
    const makers = sources('drivers').filter((file) =>
      /\bURL\.(?:can)?[pP]arse\(|new URL\((?!.*import\.meta)|deviceAddress\(/u.test(text(file)),
    );
    const known = [...followers.map(([, file]) => file), ...configured].map((file) => join('drivers', file));
    expect(makers.toSorted()).toEqual(known.toSorted());
  });

  it('follow no redirect', () => {
    const followed = [...sources('drivers'), ...sources('src')].filter(
      (file) =>
        /(?:await|return|=>?) fetch\(/u.test(text(file)) && !/redirect: '(?:error|manual)'/u.test(text(file)),
    );
    expect(followed).toEqual([]);
  });
});
