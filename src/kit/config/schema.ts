/** The shape of the configuration file, as a technician writes it. Units are in the names; every limit has its bounds here. */
import { z } from 'zod';
import { riskLevel } from '../../contract/assets.ts';
import { linkType } from '../../contract/kit.ts';
import { mediaSection, videoSection } from './media.ts';
import { metricsSection } from './metrics.ts';
import { serviceSection } from './service.ts';
import { lowBatterySection } from './low-battery.ts';
import { telemetrySection } from './telemetry.ts';

const logLevel = z.enum(['debug', 'info', 'warn', 'error', 'fatal']);

const path = z.string().min(1);
const kbps = z.number().nonnegative().max(1_000_000);
/** A name that goes into log lines, topics of metrics and the status table. */
const instanceName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/i, 'may hold letters, digits, "-" and "_" only; choose another name');

const url = z
  .string()
  .describe(
    'mqtts://host:port, over WebSocket wss://host:port/path, or without encryption mqtt:// and ws://; none: keep everything in the buffer',
  );

/** What may differ from one broker to the next. */
const brokerLogin = {
  username: z
    .string()
    .optional()
    .describe('kit_id when left out; empty: none is sent, for brokers that take it from the certificate'),
  password_file: path.optional().describe('holds the password at the broker and nothing else (chmod 640)'),
  ca_file: path.optional().describe('PEM; the certificates of the system count when left out'),
  cert_file: path.optional().describe('PEM; the client certificate'),
  key_file: path.optional().describe('PEM; the private key of the client certificate'),
  proxy: z
    .string()
    .optional()
    .describe(
      'http://host:port (CONNECT), https:// or socks5://; left out: what https_proxy, http_proxy, all_proxy and no_proxy of the environment say; none: no proxy',
    ),
  proxy_username: z.string().min(1).optional().describe('the login at the proxy'),
  proxy_password_file: path
    .optional()
    .describe('holds the password at the proxy and nothing else (chmod 640)'),
  alpn: z
    .array(z.string().min(1).max(255))
    .min(1)
    .max(8)
    .optional()
    .describe(
      'protocols to ask for in the TLS handshake (ALPN); left out: none, and on port 443 of AWS IoT Core what it expects',
    ),
  tls_name: z
    .string()
    .min(1)
    .optional()
    .describe('the name in the certificate of the broker, where it is not the host of url'),
  websocket: z
    .strictObject({
      subprotocol: z.string().min(1).default('mqtt').describe('mqttv3.1 for some old servers'),
      headers_file: path
        .optional()
        .describe('headers of the request, "Name: value" a line, such as a token of a gateway (chmod 640)'),
    })
    .optional()
    .describe('for ws:// and wss://'),
};

const brokers_max = 8;
const broker = z.strictObject({
  url: url.optional(),
  ...brokerLogin,
  protocol: z.literal(['auto', 5, '3.1.1']).default('auto').describe('auto: MQTT 5 where the broker has it'),
  keepalive_s: z.int().min(5).max(3_600).default(30).describe('MQTT keepalive'),
  connect_timeout_s: z.int().min(1).max(300).default(15).describe('for one attempt to connect'),
  ack: z
    .enum(['auto', 'broker', 'cloud'])
    .default('auto')
    .describe(
      'which acknowledgement releases tasks and alarms from the buffer; auto: the cloud, once it has acknowledged any',
    ),
  urls: z
    .array(
      z.union([
        z.string(),
        z.strictObject({ url: z.string().describe('address, as broker.url'), ...brokerLogin }),
      ]),
    )
    .min(1)
    .max(brokers_max)
    .optional()
    .describe(
      'in place of url, several brokers in order: the next one is used after a minute without a session that works, the first again once it accepts the kit, tried every 10 minutes; each an address, or url with those of the keys below that differ there',
    ),
  redirect_to: z
    .array(z.string().regex(/^[a-z0-9.-]+$/iu, 'write names of hosts or their domains, without a port'))
    .default([])
    .describe(
      'hosts and domains that a broker of MQTT 5 may send the kit on to; the domain of its own host always',
    ),
});

const uplink = z.strictObject({
  window_messages: z.int().min(1).max(1_000).default(64).describe('sent and not yet acknowledged at a time'),
  packet_ms: z
    .int()
    .min(0)
    .max(60_000)
    .default(0)
    .describe('above 0: live messages leave together, once in that time'),
  messages_per_s_max: z
    .int()
    .min(0)
    .max(100_000)
    .default(0)
    .describe('messages a second that the broker takes; 0: learnt from what it does not acknowledge'),
  metered: z
    .array(linkType)
    .default(['satellite'])
    .describe(
      'types of links on which live messages leave in packets of at least 1 s; wan.NAME.metered of links (rare probes of one link) and metered of speedtest (links not tested) do not change it',
    ),
  backlog_kbps: z
    .strictObject({
      default: kbps.default(0).describe('kbit/s on links that have no value here'),
      satellite: kbps.optional().describe('kbit/s on satellite links'),
      cellular: kbps.optional().describe('kbit/s on cellular links'),
      ethernet: kbps.optional().describe('kbit/s on Ethernet'),
      wifi: kbps.optional().describe('kbit/s on Wi-Fi'),
    })
    .prefault({})
    .describe('how fast the backlog may drain over each type of link; 0: without a cap'),
});

const outbox = z.strictObject({
  bytes_max_mb: z.number().min(1).max(1_000_000).default(512).describe('size of the buffer'),
  rows_max: z.int().min(1_000).max(100_000_000).default(5_000_000).describe('messages in the buffer'),
  free_disk_min_mb: z
    .number()
    .min(0)
    .max(1_000_000)
    .default(64)
    .describe('free space on its disk that is left to other programs'),
  age_max_days: z.number().positive().max(3_650).default(30).describe('older messages expire'),
});

const uploadRule = z.enum(['never', 'on_order', 'always']);

const files = z.strictObject({
  bytes_max_mb: z
    .number()
    .min(1)
    .max(1_000_000)
    .default(512)
    .describe('size of the files that wait for the cloud; beyond it the oldest are given up'),
  age_max_days: z.number().positive().max(3_650).default(30).describe('older files are given up'),
  upload: z
    .strictObject({
      default: uploadRule
        .default('always')
        .describe(
          'on links that have no value here; on metered ones (uplink.metered) always counts as on_order',
        ),
      satellite: uploadRule.optional().describe('on satellite links'),
      cellular: uploadRule.optional().describe('on cellular links'),
      ethernet: uploadRule.optional().describe('on Ethernet'),
      wifi: uploadRule.optional().describe('on Wi-Fi'),
    })
    .prefault({})
    .describe('when files are sent to the cloud: never, on_order (of an operator), always'),
  kbps_max: kbps.default(4_000).describe('kbit/s of files at most; 0: without a cap'),
  stills: z
    .boolean()
    .default(false)
    .describe(
      'true: what the command snapshot takes, and the whole still of an alarm beside its small picture (alarm_picture of a camera), are kept for the cloud as files',
    ),
});

const driver = z.strictObject({
  driver: z.string().min(1).describe('the name of the driver'),
  name: instanceName.optional().describe('of this instance; the name of the driver when left out'),
  options: z.record(z.string(), z.unknown()).prefault({}).describe('of the driver; see the sections below'),
});

export const state_dir_default = '/var/lib/kit-connector';
export const runtime_dir_default = '/run/kit-connector';
const drivers_max = 64;

/** What a technician knows of and leaves as it is. */
export const doctorSection = z
  .strictObject({
    accepted: z
      .array(z.string().min(1).max(200))
      .max(64)
      .default([])
      .describe(
        'warnings of kit-connector doctor that are known and stay, by what stands before their colon, such as "settings of mavlink"; they do not count for its exit code',
      ),
  })
  .prefault({});

export const configFile = z.strictObject({
  kit_id: z
    .uuid()
    .optional()
    .describe('the UUID of this kit; left out: made at the first start, kept in state_dir/kit-id'),
  kit_name: z.string().min(1).max(100).optional().describe('the name of the kit, for people'),
  state_dir: path.default(state_dir_default).describe('holds the buffer and the id of the kit'),
  runtime_dir: path.default(runtime_dir_default).describe('holds the control socket'),
  socket_group: z.string().min(1).optional().describe('the group that may use the control socket'),
  clock: z
    .enum(['auto', 'trusted'])
    .default('auto')
    .describe(
      'auto: right once the kernel or systemd-timesyncd reports that it was set from the network; trusted: always, for machines whose clock is set in another way',
    ),
  broker: broker.optional().describe('left out: an embedded broker on loopback, for trials'),
  uplink: uplink.prefault({}),
  outbox: outbox.prefault({}),
  files: files.prefault({}),
  feeds: z
    .strictObject({
      rates_hz: z
        .record(z.string(), z.number().min(0.001).max(50))
        .default({ default: 5, gps: 2, attitude: 2 })
        .describe('messages per second and asset, at most, by feed; "default" for every other feed'),
    })
    .prefault({}),
  telemetry: telemetrySection.prefault({}),
  low_battery: lowBatterySection
    .optional()
    .describe('what the kit does without while its battery is low; left out: nothing'),
  media: mediaSection.optional().describe('left out: cameras have no whep_url'),
  video: videoSection.prefault({}).describe('video for viewers of the cloud, over the link in use'),
  service: serviceSection.optional().describe('left out: the kit serves no page and no API'),
  commands: z
    .strictObject({
      disabled: z
        .array(
          z.strictObject({
            asset: z.string().min(1).describe('id or key of the asset, or *'),
            command: z.string().min(1).describe('name of the command, or *'),
          }),
        )
        .default([])
        .describe('commands that are neither offered nor run'),
      max_risk: riskLevel.default('high').describe('commands of a higher risk are neither offered nor run'),
    })
    .prefault({}),
  metrics: metricsSection.optional().describe('figures for Prometheus; left out: no port is opened'),
  log: z
    .strictObject({
      level: logLevel.default('info').describe('least level of the lines that are logged'),
      drivers: z.record(z.string(), logLevel).default({}).describe('by instance name'),
    })
    .prefault({}),
  doctor: doctorSection,
  drivers: z.array(driver).max(drivers_max).default([]),
});
export type ConfigFile = z.output<typeof configFile>;
