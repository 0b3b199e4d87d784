/** A device never decides where its password is sent. */
import { describe, expect, it } from 'vitest';
import { deviceAddress, type OwnAddress } from '../../../../src/toolkit/driver/device-address.ts';
import { texts } from '../../../../src/toolkit/driver/texts.ts';
import { logRefused } from '../../../../src/toolkit/driver/refused-addresses.ts';

const camera: OwnAddress = { scheme: 'http', host: '10.0.0.5', port: 80, ports: 'same_host' };
const pinned: OwnAddress = { ...camera, scheme: 'https', port: 443 };
const six: OwnAddress = { ...camera, host: 'fd00::5' };
const gateway: OwnAddress = { ...camera, host: '127.0.0.1', port: 8_080 };
const named: OwnAddress = { ...camera, host: 'tapo.lan', port: 2_020, peer_address: '192.168.1.5' };
const stream: OwnAddress = { scheme: 'rtsp', host: '10.0.0.5', port: 554, ports: 'reported' };

describe('deviceAddress', () => {
  it.each<[string, OwnAddress, string]>([
    ['http://10.0.0.5/onvif/media', camera, 'http://10.0.0.5:80/onvif/media'],
    ['http://10.0.0.5:8000/onvif/media?a=1&b=2', camera, 'http://10.0.0.5:8000/onvif/media?a=1&b=2'],
    ['/onvif/events', camera, 'http://10.0.0.5:80/onvif/events'],
    // Behind a router, or with a name that only the network of the camera knows.
    ['http://192.168.1.10:8000/onvif/media', camera, 'http://10.0.0.5:80/onvif/media'],
    ['http://camera.local/onvif/media', camera, 'http://10.0.0.5:80/onvif/media'],
    ['http://10.0.0.5/onvif/media', pinned, 'https://10.0.0.5:443/onvif/media'],
    ['http://10.0.0.5:8000/onvif/media', pinned, 'https://10.0.0.5:443/onvif/media'],
    ['https://10.0.0.5:8443/onvif/media', pinned, 'https://10.0.0.5:8443/onvif/media'],
    // A Tapo has its service on 2020 and its subscriptions on 1024 (home-assistant/core#91661).
    ['http://192.168.1.5:1024/event-0_2020', named, 'http://tapo.lan:1024/event-0_2020'],
    ['http://192.168.1.6:1024/event-0_2020', named, 'http://tapo.lan:2020/event-0_2020'],
    ['http://127.0.0.1:1024/x', { ...named, peer_address: '127.0.0.1' }, 'http://tapo.lan:2020/x'],
    ['http://[fd00::5]:81/x', six, 'http://[fd00::5]:81/x'],
    ['http://[fd00::6]:81/x', six, 'http://[fd00::5]:80/x'],
    ['http://127.0.0.1:9997/v3/config', gateway, 'http://127.0.0.1:8080/v3/config'],
    ['http://169.254.169.254/latest/meta-data', camera, 'http://10.0.0.5:80/latest/meta-data'],
    ['HTTP://10.0.0.5:0/x', camera, 'http://10.0.0.5:80/x'],
    ['rtsp://10.0.0.5/live?sub=1', stream, 'rtsp://10.0.0.5:554/live?sub=1'],
    ['rtsp://192.168.1.10:8554/live', stream, 'rtsp://10.0.0.5:8554/live'],
    ['rtsp://admin:guess@127.0.0.2:8554/live', stream, 'rtsp://10.0.0.5:8554/live'],
    ['rtsp://10.0.0.5', stream, 'rtsp://10.0.0.5:554/'],
    // RaySharp (agsh/onvif#231), yi-hack (roleoroleo/yi-hack-MStar#537).
    [
      'http:///onvif/events_service?session=392',
      { ...camera, port: 8_000 },
      'http://10.0.0.5:8000/onvif/events_service?session=392',
    ],
    ['http:///onvif/media_service', pinned, 'https://10.0.0.5:443/onvif/media_service'],
    // roleoroleo/sonoff-hack#3
    ['http://:8000/onvif/media_service', camera, 'http://10.0.0.5:8000/onvif/media_service'],
    ['http:///127.0.0.2/stolen', camera, 'http://10.0.0.5:80/127.0.0.2/stolen'],
    ['rtsp:///live', { ...stream, port: 8_554 }, 'rtsp://10.0.0.5:8554/live'],
    ['onvif/media_service', camera, 'http://10.0.0.5:80/onvif/media_service'],
    ['snap.jpg?u=http://x', camera, 'http://10.0.0.5:80/snap.jpg?u=http://x'],
    // The login of a person (openvideolibs/python-onvif-zeep-async#88).
    ['http://admin:p%40ss@10.0.0.5:8000/x', camera, 'http://10.0.0.5:8000/x'],
    ['http://admin:p@ss@192.168.1.10/x?y=1', camera, 'http://10.0.0.5:80/x?y=1'],
    ['http://10.0.0.5@127.0.0.2/x', camera, 'http://10.0.0.5:80/x'],
    // The zone is that of an interface of the camera (RFC 6874, and as most write it).
    ['http://[fe80::5%25eth0]:81/x', { ...six, host: 'fe80::5%eth1' }, 'http://[fe80::5]:81/x'],
    ['http://kit:pw@[fd00::5%eth0]:81/x?y=%20', six, 'http://[fd00::5]:81/x?y=%20'],
  ])('of %s is on the configured host', (reported, own, url) => {
    expect(deviceAddress(reported, own)).toEqual({ url });
  });

  it.each<[string, OwnAddress, string]>([
    ['x:@127.0.0.2:19999/stolen', camera, texts.names_other_host(texts.no_host)],
    ['http:@127.0.0.2:19999/stolen', camera, texts.names_other_host(texts.no_host)],
    ['//127.0.0.2/stolen', camera, texts.names_other_host(texts.no_host)],
    ['@127.0.0.2/stolen', camera, texts.names_other_host(texts.no_host)],
    ['', camera, texts.no_host],
    ['http://', camera, texts.no_host],
    ['http://10.0.0.5/x#@127.0.0.2/', camera, texts.has_fragment],
    ['http://10.0.0.5\\@127.0.0.2/x', camera, texts.forbidden_characters],
    ['http://10.0.0.5/x\r\nHost: y', camera, texts.forbidden_characters],
    ['file://10.0.0.5/etc/passwd', camera, 'its scheme is file, not http'],
    ['gopher://10.0.0.5/1', camera, 'its scheme is gopher, not http'],
    ['rtsp://10.0.0.5/live', camera, 'its scheme is rtsp, not http'],
    ['http://10.0.0.5:99999/x', camera, texts.not_a_url],
    [`http://10.0.0.5/${'x'.repeat(2_048)}`, camera, 'it is longer than 2048 characters'],
    ['rtsp://10.0.0.5/live#transport=ws://127.0.0.2:19998/rtsp', stream, texts.has_fragment],
    ['rtsp:@127.0.0.2/live', stream, texts.names_other_host(texts.no_host)],
    ['exec://bash/x', stream, texts.names_other_host('its scheme is exec, not rtsp')],
    ['http://10.0.0.5/live', stream, 'its scheme is http, not rtsp'],
    // A name that every object has.
    ['constructor://10.0.0.5/live', stream, 'its scheme is constructor, not rtsp'],
  ])('of %j is refused', (reported, own, refused) => {
    expect(deviceAddress(reported, own)).toEqual({ refused });
  });

  it('never leads to another host, whatever the device reports', () => {
    const hosts = ['127.0.0.2', 'evil.example', '[::1]', '10.0.0.5@127.0.0.2', '10.0.0.5.evil.example'];
    const forms = [
      'http://H/x',
      'http:H/x',
      '//H/x',
      '/\\H/x',
      '/x@H',
      '/../@H/',
      'x:@H/',
      'http://10.0.0.5:80@H/',
      '/%0a@H',
      'http://H:80/..//H/',
    ];
    const led = [camera, pinned, six, gateway].flatMap((own) =>
      forms.flatMap((form) =>
        hosts.flatMap((host) => {
          const found = deviceAddress(form.replaceAll('H', host), own);
          if ('refused' in found) return [];
          const { hostname, username, hash } = new URL(found.url);
          const name = own.host.includes(':') ? `[${own.host}]` : own.host;
          return hostname === name && username === '' && hash === '' ? [] : [found.url];
        }),
      ),
    );
    expect(led).toEqual([]);
  });
});

describe('logRefused', () => {
  function logged() {
    const facts: object[] = [];
    const warn = (about: object): void => void facts.push(about);
    return { facts, refuse: logRefused({ warn }, { camera: 'gate' }) };
  }

  it('logs each address of a device once, with the reason', () => {
    const { facts, refuse } = logged();
    refuse('http://thief/', 'why');
    refuse('http://thief/', 'why');
    expect(facts).toEqual([{ camera: 'gate', address: 'http://thief/', reason: 'why' }]);
  });

  it('bounds the lines and the length of what a device makes up', () => {
    const { facts, refuse } = logged();
    for (let n = 0; n < 100; n += 1) refuse(`http://thief/${n}/${'x'.repeat(100_000)}`, 'why');
    expect(facts).toHaveLength(8);
    expect(JSON.stringify(facts).length).toBeLessThan(4_000);
  });
});
