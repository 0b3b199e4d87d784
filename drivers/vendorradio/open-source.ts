/** Opens the protocol client of a radio that its options select. */
import { certificateCheck } from '../../src/device/certificate-check.ts';
import type { DeviceName } from '../../src/device/device-name.ts';
import { LoginGuard } from '../../src/device/login-guard.ts';
import { readSecretFile } from '../../src/device/secret-file.ts';
import { pinnedHttp } from '../../src/device/pinned-http.ts';
import type { Memory } from './memory.ts';
import { portOf } from './options.ts';
import type { RadioAssetParts } from './assets/radio-asset.ts';
import { snmpSource } from './snmp/snmp-radio.ts';
import type { SessionHooks, RadioSource } from './source.ts';
import { Ubus } from './ubus/ubus.ts';
import { ubusSource } from './ubus/ubus-radio.ts';
import { texts } from './texts.ts';

interface SourceParts extends RadioAssetParts {
  readonly memory: Memory;
  readonly name: DeviceName;
  readonly hooks: SessionHooks;
}

export function openSource({ host, radio, name, options, limits, memory, hooks }: SourceParts): RadioSource {
  const { log } = host;
  const guard = new LoginGuard({ memory, limits });
  if (radio.kind === 'snmp') return snmpSource({ radio, name, options, limits, log, guard });
  const { path, tls, username, password_file } = radio;
  const port = portOf(radio);
  if (!tls) log.warn({ radio: radio.name }, texts.no_tls);
  const address = `${radio.host}:${port}`;
  const check = certificateCheck({ configured: radio.certificate_sha256, memory, address, log });
  const http = pinnedHttp({
    host: radio.host,
    name,
    port,
    tls,
    check,
    connect_ms: limits.request_ms,
    reply_bytes_max: limits.reply_bytes_max,
    refused_remedy: texts.refused_remedy,
  });
  const password = async (): Promise<string> => readSecretFile('password_file', password_file);
  const ubus = new Ubus({ http, path, username, password, limits, guard });
  return ubusSource({ ubus, close: http.close, radio, options, limits, log, hooks });
}
