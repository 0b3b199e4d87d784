/** Wrong configurations, and the sentences that a technician gets for them. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { faultsOfText, kit_id } from './lab.ts';
import { texts } from '../../../../src/kit/config/texts.ts';

const id = `kit_id: ${kit_id}\n`;

type Case = readonly [title: string, text: string, ...faults: readonly string[]];

const cases: readonly Case[] = [
  ['an empty file', '', `config.yaml: ${texts.file_empty}`],
  ['a file of comments', '# nothing yet\n', `config.yaml: ${texts.file_empty}`],
  [
    'a media template without a place for the name',
    `${id}media: { server: template, url: 'http://192.0.2.1/cam/whep' }\n`,
    'config.yaml:2:28 media.url: is "http://192.0.2.1/cam/whep", which holds no {name}; put it where the name of the stream belongs',
  ],
  [
    'a media server without the address for viewers',
    `${id}media: { server: mediamtx }\n`,
    'config.yaml:2:1 media.viewer_url: is missing; add it (where viewers reach the server, such as http://192.168.1.1:8889)',
  ],
  [
    'a media password that is not there',
    `${id}media: { server: go2rtc, viewer_url: 'http://192.0.2.1:1984', password_file: nowhere }\n`,
    'config.yaml:2:63 media.password_file: nowhere cannot be read (no such file or directory); create it or name another file',
  ],
  ['a text', 'just text', `config.yaml:1:1: ${texts.no_keys}`],
  ['a list', '- kit_id\n', `config.yaml:1:1: ${texts.no_keys}`],
  ['a key given twice', `${id}kit_id: x\n`, `config.yaml:2:1: ${texts.duplicate_key}`],
  ['a list as a key', `${id}? [driver, gateway]\n: x\n`, `config.yaml:2:3: ${texts.key_no_word}`],
  ['a tab', `${id}broker:\n\turl: x\n`, `config.yaml:3:1: ${texts.tab_indents}`],
  ['a second document', `${id}---\nkit_id: x\n`, `config.yaml:2:1: ${texts.second_document}`],
  ['an open quote', `${id}kit_name: "abc\n`, `config.yaml:3:1: ${texts.not_closed}`],
  [
    'two colons',
    `${id}kit_name: b: c\n`,
    'config.yaml:2:11: is not YAML (nested mappings are not allowed in compact mappings); check quotes, colons and indentation',
  ],
  ['crooked indentation', `${id}broker:\n  url: a\n ack: b\n`, `config.yaml:4:1: ${texts.bad_indent}`],
  [
    'an alias of nothing',
    `${id}kit_name: *name\n`,
    'config.yaml: unresolved alias (the anchor must be set before the alias): name; write the values out instead of using aliases',
  ],
  [
    'a key that was cut short',
    `${id}telem: {}\n`,
    'config.yaml:2:1 telem: unknown key; did you mean "telemetry"?',
  ],
  [
    'a kit_id that is no UUID',
    'kit_id: kit-7\n',
    'config.yaml:1:1 kit_id: is "kit-7", which is not a UUID; write it like 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10',
  ],
  ['a misspelt key', `${id}kit_nam: x\n`, 'config.yaml:2:1 kit_nam: unknown key; did you mean "kit_name"?'],
  [
    'a key of a group in one word with its group',
    `${id}loglevel: debug\n`,
    'config.yaml:2:1 loglevel: unknown key; did you mean "level" in the group "log"?',
  ],
  [
    'an unknown key',
    `${id}broker:\n  url: mqtts://b\n  colour: red\n`,
    'config.yaml:4:3 broker.colour: unknown key; remove it (known here: url, username, password_file, ca_file, cert_file, key_file, proxy, proxy_username, proxy_password_file, alpn, tls_name, websocket, protocol, keepalive_s, connect_timeout_s, ack, urls, redirect_to)',
  ],
  ['a number for a text', `${id}kit_name: 7\n`, 'config.yaml:2:1 kit_name: is 7; write a text in quotes'],
  [
    'a text that is too long',
    `${id}kit_name: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n`,
    'config.yaml:2:1 kit_name: is too long; 100 is the most',
  ],
  [
    'a section without content',
    `${id}broker:\n`,
    'config.yaml:2:1 broker: has no value; write a group of keys or remove the key',
  ],
  [
    'a text for a section',
    `${id}broker: mqtts://b\n`,
    'config.yaml:2:1 broker: is "mqtts://b"; write a group of keys (url, username, password_file, ca_file, cert_file, key_file, ...)',
  ],
  [
    'a broker without address',
    `${id}broker:\n  username: x\n`,
    'config.yaml:2:1 broker.url: is missing; add it (mqtts://host:port, or wss://host:port/path), or add broker.urls with several',
  ],
  [
    'an address of another scheme',
    `${id}broker:\n  url: https://broker.example.com\n`,
    'config.yaml:3:3 broker.url: begins with https://, which is not supported; write mqtts:// or wss:// (mqtt:// or ws:// without encryption)',
  ],
  [
    'an address without scheme',
    `${id}broker:\n  url: broker.example.com\n`,
    'config.yaml:3:3 broker.url: is "broker.example.com", which is not an address; write it like mqtts://broker.example.com:8883',
  ],
  [
    'an address whose host would be taken for a scheme',
    `${id}broker:\n  url: localhost:1883\n`,
    'config.yaml:3:3 broker.url: is "localhost:1883", which is not an address; write it like mqtts://broker.example.com:8883',
  ],
  [
    'an address that cannot be read and holds credentials',
    `${id}broker:\n  url: mqtts://kit:secret@b:88x\n`,
    'config.yaml:3:3 broker.url: is "mqtts://***@b:88x", which is not an address; write it like mqtts://broker.example.com:8883',
  ],
  [
    'credentials in the address',
    `${id}broker:\n  url: mqtts://kit:secret@b\n`,
    `config.yaml:3:3 broker.url: ${texts.credentials_in_url}`,
  ],
  [
    'a path in the address',
    `${id}broker:\n  url: mqtts://b:8883/mqtt\n`,
    `config.yaml:3:3 broker.url: ${texts.text_after_port}`,
  ],
  [
    'what belongs to WebSocket, TLS or a proxy, without it',
    `${id}broker:\n  url: mqtt://b\n  alpn: [mqtt]\n  tls_name: b.example\n  proxy_username: kit\n  websocket: {}\n`,
    `config.yaml:4:3 broker.alpn: ${texts.no_effect_without_tls}`,
    `config.yaml:5:3 broker.tls_name: ${texts.no_effect_without_tls}`,
    `config.yaml:6:3 broker.proxy_username: ${texts.no_effect_without_proxy}`,
    `config.yaml:7:3 broker.websocket: ${texts.no_effect_without_websocket}`,
  ],
  [
    'a proxy that is none',
    `${id}broker:\n  url: wss://b\n  proxy: ftp://u:p@proxy\n`,
    `config.yaml:4:3 broker.proxy: ${texts.no_proxy_address('ftp://***@proxy')}`,
  ],
  [
    'credentials in the address of the proxy',
    `${id}broker:\n  url: wss://b\n  proxy: http://u:p@proxy\n`,
    `config.yaml:4:3 broker.proxy: ${texts.credentials_in_proxy}`,
  ],
  [
    'a password in the file',
    `${id}broker:\n  url: mqtts://b\n  password: hunter2\n`,
    'config.yaml:4:3 broker.password: secrets may not stand in this file; write it to a separate file (chmod 600) and give its path as "password_file"',
  ],
  [
    'a misspelt key with a unit',
    `${id}broker:\n  url: mqtts://b\n  keepalive: 30\n`,
    'config.yaml:4:3 broker.keepalive: unknown key; did you mean "keepalive_s"?',
  ],
  [
    'a number below its range',
    `${id}broker:\n  url: mqtts://b\n  keepalive_s: 3\n`,
    'config.yaml:4:3 broker.keepalive_s: is 3, which is too small; write 5 or more',
  ],
  [
    'a number above its range',
    `${id}broker:\n  url: mqtts://b\n  connect_timeout_s: 301\n`,
    'config.yaml:4:3 broker.connect_timeout_s: is 301, which is too large; write 300 or less',
  ],
  [
    'a text for a number',
    `${id}broker:\n  url: mqtts://b\n  keepalive_s: thirty\n`,
    'config.yaml:4:3 broker.keepalive_s: is "thirty"; write a number',
  ],
  [
    'a number in quotes',
    `${id}broker:\n  url: mqtts://b\n  keepalive_s: "30"\n`,
    'config.yaml:4:3 broker.keepalive_s: is "30"; write a number without quotes',
  ],
  [
    'a fraction for a whole number',
    `${id}broker:\n  url: mqtts://b\n  keepalive_s: 30.5\n`,
    'config.yaml:4:3 broker.keepalive_s: is 30.5; write a whole number',
  ],
  [
    'an unknown protocol',
    `${id}broker:\n  url: mqtts://b\n  protocol: 4\n`,
    'config.yaml:4:3 broker.protocol: is 4; write one of auto, 5, 3.1.1',
  ],
  [
    'a number in quotes where words are allowed, too',
    `${id}broker:\n  url: mqtts://b\n  protocol: "5"\n`,
    'config.yaml:4:3 broker.protocol: is "5"; write 5 without quotes',
  ],
  [
    'a misspelt word',
    `${id}broker:\n  url: mqtts://b\n  ack: clowd\n`,
    'config.yaml:4:3 broker.ack: is "clowd"; did you mean "cloud"? (auto, broker, cloud)',
  ],
  [
    'a certificate without encryption',
    `${id}broker:\n  url: mqtt://b\n  ca_file: ca.pem\n`,
    'config.yaml:4:3 broker.ca_file: ca.pem cannot be read (no such file or directory); create it or name another file',
    `config.yaml:4:3 broker.ca_file: ${texts.no_effect_without_tls}`,
  ],
  [
    'a certificate that is not there',
    `${id}broker:\n  url: mqtts://b\n  cert_file: c.pem\n`,
    'config.yaml:4:3 broker.cert_file: c.pem cannot be read (no such file or directory); create it or name another file',
  ],
  [
    'an unknown type of link',
    `${id}uplink: { metered: [starlink] }\n`,
    'config.yaml:2:21 uplink.metered[0]: is "starlink"; write one of satellite, cellular, ethernet, wifi',
  ],
  [
    'an unknown media server',
    `${id}media: { server: mediamxt }\n`,
    'config.yaml:2:10 media.server: is "mediamxt"; did you mean "mediamtx"? (mediamtx, go2rtc, template)',
  ],
  [
    'a word for a list',
    `${id}uplink: { metered: satellite }\n`,
    'config.yaml:2:11 uplink.metered: is "satellite"; write a list (lines that begin with "- ")',
  ],
  [
    'a cap for an unknown link',
    `${id}uplink:\n  backlog_kbps: { lte: 3 }\n`,
    'config.yaml:3:19 uplink.backlog_kbps.lte: unknown key; remove it (known here: default, satellite, cellular, ethernet, wifi)',
  ],
  [
    'an age of nothing',
    `${id}outbox: { age_max_days: 0 }\n`,
    'config.yaml:2:11 outbox.age_max_days: is 0, which is too small; write more than 0',
  ],
  [
    'an endless buffer',
    `${id}outbox: { bytes_max_mb: .inf }\n`,
    'config.yaml:2:11 outbox.bytes_max_mb: is Infinity; write a number',
  ],
  [
    'a rate for an unknown feed',
    `${id}feeds: { rates_hz: { gpss: 2 } }\n`,
    'config.yaml:2:22 feeds.rates_hz.gpss: there is no feed of this name; did you mean "gps"?',
  ],
  [
    'a rate of zero',
    `${id}feeds: { rates_hz: { gps: 0 } }\n`,
    'config.yaml:2:22 feeds.rates_hz.gps: is 0, which is too small; write 0.001 or more',
  ],
  [
    'an unknown risk',
    `${id}commands: { max_risk: none }\n`,
    'config.yaml:2:13 commands.max_risk: is "none"; write one of low, medium, high',
  ],
  [
    'a rule without a command',
    `${id}commands: { disabled: [{ asset: "*" }] }\n`,
    'config.yaml:2:24 commands.disabled[0].command: is missing; add it (name of the command, or *)',
  ],
  [
    'an unknown level',
    `${id}log: { level: verbose }\n`,
    'config.yaml:2:8 log.level: is "verbose"; write one of debug, info, warn, error, fatal',
  ],
  [
    'a level for an unknown driver',
    `${id}drivers:\n  - driver: probe\n    options: {}\nlog: { drivers: { prob: debug } }\n`,
    'config.yaml:5:19 log.drivers.prob: no driver of this name is configured; did you mean "probe"?',
  ],
  [
    'an unknown group',
    `${id}socket_group: nobody-here\n`,
    'config.yaml:2:1 socket_group: there is no group "nobody-here" on this machine; create it (groupadd --system nobody-here) or remove the key',
  ],
  [
    'an empty directory name',
    `${id}state_dir: ""\n`,
    'config.yaml:2:1 state_dir: is empty; give it a value or remove the key',
  ],
  [
    'drivers that are no list',
    `${id}drivers:\n  driver: probe\n`,
    'config.yaml:2:1 drivers: is a group of keys; write a list (lines that begin with "- ")',
  ],
  [
    'a driver without its name',
    `${id}drivers:\n  - name: x\n`,
    'config.yaml:3:5 drivers[0].driver: is missing; add it (the name of the driver)',
  ],
  [
    'a driver that is a word',
    `${id}drivers:\n  - probe\n`,
    'config.yaml:3:5 drivers[0]: is "probe"; write a group of keys (driver, name, options)',
  ],
  [
    'a misspelt driver',
    `${id}drivers:\n  - driver: prob\n`,
    'config.yaml:3:5 drivers[0].driver: there is no driver "prob"; did you mean "probe"?',
  ],
  [
    'an unknown driver',
    `${id}drivers:\n  - driver: zigbee\n`,
    'config.yaml:3:5 drivers[0].driver: there is no driver "zigbee"; the drivers are probe, broken, onvif',
  ],
  [
    'a driver that cannot be loaded',
    `${id}drivers:\n  - driver: broken\n`,
    'config.yaml:3:5 drivers[0].driver: the driver "broken" cannot be loaded (Cannot find package "serialport"); install kit-connector again',
  ],
  [
    'two drivers of one name',
    `${id}drivers:\n  - driver: probe\n  - driver: probe\n`,
    'config.yaml:4:5 drivers[1]: is named "probe" like drivers[0]; give each its own "name"',
  ],
  [
    'a name with a space',
    `${id}drivers:\n  - driver: probe\n    name: a b\n`,
    'config.yaml:4:5 drivers[0].name: is "a b", which may hold letters, digits, "-" and "_" only; choose another name',
  ],
  [
    'options without content',
    `${id}drivers:\n  - driver: probe\n    options:\n`,
    'config.yaml:4:5 drivers[0].options: has no value; write a group of keys or remove the key',
  ],
  [
    'a misspelt option',
    `${id}drivers:\n  - driver: probe\n    options: { intervall_s: 3 }\n`,
    'config.yaml:4:16 drivers[0].options.intervall_s: unknown key; did you mean "interval_s"?',
  ],
  [
    'an option out of range',
    `${id}drivers:\n  - driver: probe\n    options: { port: 70000 }\n`,
    'config.yaml:4:16 drivers[0].options.port: is 70000, which is too large; write 65535 or less',
  ],
  [
    'a password among options',
    `${id}drivers:\n  - driver: probe\n    options: { password: x }\n`,
    'config.yaml:4:16 drivers[0].options.password: secrets may not stand in this file; write it to a separate file (chmod 600) and name that file instead',
  ],
  [
    'a fault deep in the options',
    `${id}drivers:\n  - driver: probe\n    options:\n      wans:\n        - name: wan1\n          typ: satellite\n`,
    'config.yaml:6:11 drivers[0].options.wans[0].type: is missing; add it (satellite, cellular)',
    'config.yaml:7:11 drivers[0].options.wans[0].typ: unknown key; did you mean "type"?',
  ],
];

test.each(cases)(
  '%s is refused with a sentence that names the place and the remedy',
  async (_, text, ...faults) => {
    expect(await faultsOfText(text)).toEqual(faults);
  },
);

const sections = ['broker', 'uplink', 'outbox', 'feeds', 'telemetry', 'commands', 'log', 'drivers'] as const;

test('any content of a section gives a configuration or faults with their place, never a crash', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...sections),
      fc.jsonValue({ maxDepth: 4 }),
      async (section, content) => {
        const faults = await faultsOfText(stringify({ kit_id, [section]: content }));
        for (const fault of faults) expect(fault).toMatch(/^config\.yaml:\d+:\d+ .+: .+(; .+|\)$)/);
      },
    ),
    { numRuns: 200 },
  );
});

test('any text gives faults or a configuration', { tags: 'long' }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
      expect((await faultsOfText(`${id}${text}`)).every((fault) => fault.startsWith('config.yaml'))).toBe(
        true,
      );
    }),
    { numRuns: 300 },
  );
});
