/** OIDs of each fact, by vendor. The standard ones are RFC 3418, RFC 2863 and RFC 2790. */
import type { OidName, SnmpRadio } from '../options.ts';

export const oid = {
  sysDescr: '1.3.6.1.2.1.1.1.0',
  sysObjectID: '1.3.6.1.2.1.1.2.0',
  sysName: '1.3.6.1.2.1.1.5.0',
  /** Age of the system; sysUpTime is that of the agent. */
  hrSystemUptime: '1.3.6.1.2.1.25.1.1.0',
  hrProcessorLoad: '1.3.6.1.2.1.25.3.3.1.2',
  ifDescr: '1.3.6.1.2.1.2.2.1.2',
  ifType: '1.3.6.1.2.1.2.2.1.3',
  ifPhysAddress: '1.3.6.1.2.1.2.2.1.6',
  ifHCInOctets: '1.3.6.1.2.1.31.1.1.1.6',
  ifHCOutOctets: '1.3.6.1.2.1.31.1.1.1.10',
} as const;

export interface Scaled {
  readonly oid: string;
  readonly scale: number;
}

interface StationTable {
  readonly mac: string;
  readonly rssi: string;
  readonly noise: string;
  readonly tx_rate_bps: string;
  readonly rx_rate_bps: string;
}

export interface Preset {
  readonly vendor: string | null;
  readonly oids: Readonly<Partial<Record<OidName, Scaled>>>;
  /** Columns of a table of stations. */
  readonly stations: StationTable | undefined;
}

const ubnt = '1.3.6.1.4.1.41112.1.4';
const plain = (text: string): Scaled => ({ oid: text, scale: 1 });

const generic: Preset = { vendor: null, oids: {}, stations: undefined };

const presets: Readonly<Record<'generic' | 'openwrt' | 'airos', Preset>> = {
  generic,
  /** Its snmpd has no wireless MIB, only status and throughput. */
  openwrt: generic,
  airos: {
    vendor: 'Ubiquiti',
    oids: {
      rssi: plain(`${ubnt}.5.1.5.1`),
      noise: plain(`${ubnt}.5.1.8.1`),
      quality_pct: plain(`${ubnt}.5.1.7.1`),
      tx_rate_bps: plain(`${ubnt}.5.1.9.1`),
      rx_rate_bps: plain(`${ubnt}.5.1.10.1`),
      bandwidth_mhz: plain(`${ubnt}.5.1.14.1`),
      freq_mhz: plain(`${ubnt}.1.1.4.1`),
    },
    stations: {
      mac: `${ubnt}.7.1.1`,
      rssi: `${ubnt}.7.1.3`,
      noise: `${ubnt}.7.1.4`,
      tx_rate_bps: `${ubnt}.7.1.11`,
      rx_rate_bps: `${ubnt}.7.1.12`,
    },
  },
};

/** airOS identifies itself as net-snmp or with frogfoot's old number on some models, so its own tree is checked too. */
export function presetOf(chosen: SnmpRadio['preset'], object_id: string, hasAirosTree: boolean): Preset {
  if (chosen !== 'auto') return presets[chosen];
  return hasAirosTree || object_id.startsWith('1.3.6.1.4.1.41112') ? presets.airos : presets.generic;
}

export const airos_probe = `${ubnt}.1.1.4.1`;
