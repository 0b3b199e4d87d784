/**
 * Brokers that clouds run for their customers, and what their documents say of them. They announce little of it in MQTT, and some
 * end or starve connections that go beyond. The sources are named in systemd/broker/clouds.md.
 */

export interface BrokerProfile {
  readonly name: string;
  /** Names of the hosts that customers get. */
  readonly hosts: RegExp;
  /** By scheme; all of them use TLS. */
  readonly ports: Readonly<Record<'mqtts' | 'wss', number>>;
  /** Another port of `mqtts`, which needs ALPN. */
  readonly alpn_port?: number;
  readonly login: 'certificate' | 'password';
  /** What the user name must be, where it is not free. */
  readonly username?: string;
  /** PUBLISH packets of one connection; left out: no limit is documented. */
  readonly publishes_per_s?: number;
  readonly payload_bytes_max: number;
}

const kib = 1_024;

export const broker_profiles: readonly BrokerProfile[] = [
  {
    name: 'AWS IoT Core',
    hosts: /\.iot\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$/u,
    ports: { mqtts: 8883, wss: 443 },
    alpn_port: 443,
    login: 'certificate',
    publishes_per_s: 100,
    payload_bytes_max: 128 * kib,
  },
  {
    name: 'Azure Event Grid',
    hosts: /\.ts\.eventgrid\.azure\.(?:net|us|cn)$/u,
    ports: { mqtts: 8883, wss: 443 },
    login: 'certificate',
    username: 'the authentication name of the client',
    publishes_per_s: 1_000,
    payload_bytes_max: 512 * kib,
  },
  {
    name: 'HiveMQ Cloud',
    hosts: /\.hivemq\.cloud$/u,
    ports: { mqtts: 8883, wss: 8884 },
    login: 'password',
    username: 'that of the access credentials',
    payload_bytes_max: 5_120 * kib,
  },
  {
    name: 'EMQX Serverless',
    hosts: /\.emqxsl\.(?:com|cn)$/u,
    ports: { mqtts: 8883, wss: 8084 },
    login: 'password',
    username: 'that of the authentication entry',
    publishes_per_s: 10,
    payload_bytes_max: 1_024 * kib,
  },
];

/** Undefined: the host is none of these clouds. */
export function profileOf(host: string): BrokerProfile | undefined {
  return broker_profiles.find(({ hosts }) => hosts.test(host.toLowerCase()));
}
