/** Opens what a radio is spoken to with, as its section of the options says. */
import { pinnedHttp } from '../../src/platform/pinned-http.ts';
import { certificateCheck, type Memory, readSecret } from './memory.ts';
import { portOf } from './options.ts';
import type { RadioAssetParts } from './radio-asset.ts';
import { snmpSource } from './snmp-radio.ts';
import type { KeeperHooks, RadioSource } from './source.ts';
import { Ubus } from './ubus.ts';
import { ubusSource } from './ubus-radio.ts';

interface SourceParts extends RadioAssetParts {
  readonly memory: Memory;
  readonly hooks: KeeperHooks;
}

export function openSource({ host, radio, options, limits, memory, hooks }: SourceParts): RadioSource {
  const { log } = host;
  if (radio.kind === 'snmp') return snmpSource({ radio, options, limits, log });
  const { path, tls, username, password_file } = radio;
  const port = portOf(radio);
  if (!tls) log.warn({ radio: radio.name }, 'tls is off: the password crosses the network in the clear');
  const address = `${radio.host}:${port}`;
  const check = certificateCheck({ pinned: radio.certificate_sha256, memory, address, log });
  const http = pinnedHttp({
    host: radio.host,
    port,
    tls,
    check,
    connect_ms: limits.request_ms,
    reply_bytes_max: limits.reply_bytes_max,
    refused_remedy: 'check that its web server runs, and check port and tls',
  });
  const password = async (): Promise<string> => readSecret('password_file', password_file);
  const ubus = new Ubus({ http, path, username, password, limits });
  return ubusSource({ ubus, close: http.close, radio, options, limits, log, hooks });
}
