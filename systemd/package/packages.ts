/** The three packages: two that run something, each as its own user and with its own files, over one that holds the program. */

export interface Package {
  readonly name: string;
  readonly description: string;
  readonly control: Readonly<Record<string, string>>;
  /** What dpkg runs, in `debian/`; what is common to two packages names them #PACKAGE#. */
  readonly scripts: readonly string[];
  /** What is copied as it is: from the repository, to the system. */
  readonly files: readonly (readonly [from: string, to: string])[];
}

/** The first version of three packages; in those before it `kit-connector` held everything. */
export const split_version = '0.2.0~';

/** Named in each other's fields; dpkg-gencontrol's name for it. */
export const version_variable = '${binary:Version}';

const lintian = (name: string): readonly [string, string] => [
  `systemd/package/debian/${name}/lintian-overrides`,
  `usr/share/lintian/overrides/${name}`,
];

export const runtime: Package = {
  name: 'kit-connector-runtime',
  description: `program of kit-connector, with its own Node.js
 What kit-connector (the gateway of a field kit) and kit-connector-service (the
 service for many kits) run, and the command kit-connector. It starts nothing.
 .
 It brings its own Node.js, so that it does not depend on the version that the
 system has.
`,
  control: {
    Depends: 'libc6 (>= 2.34), libgcc-s1, libstdc++6 (>= 11)',
    Recommends: 'ca-certificates',
    Breaks: `kit-connector (<< ${split_version})`,
    Replaces: `kit-connector (<< ${split_version})`,
  },
  scripts: [],
  files: [
    ['src/kit/config/config.schema.json', 'usr/share/kit-connector/config.schema.json'],
    ['systemd/package/debian/kit-connector.sh', 'usr/bin/kit-connector'],
    ['systemd/broker/mosquitto.conf', 'usr/share/kit-connector/broker/mosquitto.conf'],
    ['systemd/broker/mosquitto.acl', 'usr/share/kit-connector/broker/mosquitto.acl'],
    ['systemd/broker/emqx.conf', 'usr/share/kit-connector/broker/emqx.conf'],
    ['systemd/broker/emqx-acl.conf', 'usr/share/kit-connector/broker/emqx-acl.conf'],
    lintian('kit-connector-runtime'),
  ],
};

export const gateway: Package = {
  name: 'kit-connector',
  description: `connects the devices of a field kit to the cloud
 A daemon on the gateway of a field kit. It speaks to drones, cameras, modems
 and WAN links, publishes over MQTT what they say, and carries out what the
 cloud asks of them. While the kit is offline it keeps everything in a file
 and delivers it afterwards.
`,
  control: {
    Depends: `kit-connector-runtime (= ${version_variable}), init-system-helpers (>= 1.54), passwd, systemd (>= 252)`,
    Recommends: 'polkitd | policykit-1',
    Suggests: 'modemmanager, gpsd',
  },
  scripts: ['kit-connector/preinst', 'kit-connector/postinst', 'prerm', 'postrm'],
  files: [
    ['systemd/kit-connector.service', 'lib/systemd/system/kit-connector.service'],
    ['systemd/kit-connector.sysusers', 'usr/lib/sysusers.d/kit-connector.conf'],
    ['systemd/kit-connector.tmpfiles', 'usr/lib/tmpfiles.d/kit-connector.conf'],
    ['systemd/kit-connector.sysctl', 'usr/lib/sysctl.d/50-kit-connector.conf'],
    ['systemd/kit-connector.polkit.rules', 'usr/share/polkit-1/rules.d/50-kit-connector.rules'],
    ['systemd/config.yaml', 'usr/share/kit-connector/config.yaml'],
    ['systemd/grafana-dashboard.json', 'usr/share/kit-connector/grafana-dashboard.json'],
    ['systemd/alerts.yaml', 'usr/share/kit-connector/alerts.yaml'],
    lintian('kit-connector'),
  ],
};

const service_share = 'usr/share/kit-connector-service';

export const service: Package = {
  name: 'kit-connector-service',
  description: `REST, WebSocket and console for many field kits
 Receives over MQTT what field kits publish, keeps their history in SQLite or
 PostgreSQL, and serves it: the interface of kits, assets and telemetry, and a
 console for browsers. For a machine of the cloud; no daemon of a gateway.
`,
  control: {
    Depends: `kit-connector-runtime (= ${version_variable}), init-system-helpers (>= 1.54), passwd, systemd (>= 252)`,
    Suggests: 'mosquitto, postgresql, nginx | haproxy',
    Breaks: `kit-connector (<< ${split_version})`,
    Replaces: `kit-connector (<< ${split_version})`,
  },
  scripts: ['kit-connector-service/postinst', 'prerm', 'postrm'],
  files: [
    ['systemd/kit-connector-service.service', 'lib/systemd/system/kit-connector-service.service'],
    ['systemd/kit-connector-service.sysusers', 'usr/lib/sysusers.d/kit-connector-service.conf'],
    ['systemd/kit-connector-service.tmpfiles', 'usr/lib/tmpfiles.d/kit-connector-service.conf'],
    ['systemd/service.yaml', `${service_share}/service.yaml`],
    ['systemd/alerts.yaml', `${service_share}/alerts.yaml`],
    ['systemd/grafana/service-dashboard.json', `${service_share}/service-dashboard.json`],
    ['systemd/grafana/fleet-dashboard.json', `${service_share}/grafana/fleet-dashboard.json`],
    ['systemd/grafana/datasource.yaml', `${service_share}/grafana-provisioning/datasource.yaml`],
    ['systemd/grafana/dashboards.yaml', `${service_share}/grafana-provisioning/dashboards.yaml`],
    ['systemd/proxy/nginx.conf', `${service_share}/proxy/nginx.conf`],
    ['systemd/proxy/haproxy.cfg', `${service_share}/proxy/haproxy.cfg`],
    ['systemd/database/patroni.yml', `${service_share}/database/patroni.yml`],
    ['systemd/database/haproxy.cfg', `${service_share}/database/haproxy.cfg`],
    ...['compose.yaml', 'service.yaml', 'mosquitto.conf', 'Caddyfile', 'kubernetes.yaml'].map(
      (name) => [`systemd/container/${name}`, `${service_share}/container/${name}`] as const,
    ),
    ['systemd/broker/mosquitto.acl', `${service_share}/container/mosquitto.acl`],
    lintian('kit-connector-service'),
  ],
};

/** In the order in which dpkg may take them. */
export const packages: readonly Package[] = [runtime, gateway, service];
