/** Builds the identity of a camera from the hardware data that it reports. */
import { isIPv4 } from 'node:net';
import { DeviceRejected } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';
import { everywhere, textAt, type XmlNode } from '../soap/xml.ts';

export interface DeviceInformation {
  readonly manufacturer: string | null;
  readonly model: string | null;
  readonly firmware: string | null;
  readonly serial: string | null;
}

/** Placeholders of makers for a missing serial number, and defaults that many cameras share. */
const placeholder =
  /^(?:[0x:.\s-]+|(.)\1*|0?123456(?:7(?:8(?:90?)?)?)?|12345679890|abcd1234|abcdef\d*|none|null|unknown|n\/?a|serial(?:[ _-]?number)?|default|0+65536|-+)$/iu;
/** Hardware addresses that firmware ships with. */
const default_macs: ReadonlySet<string> = new Set([
  '00123456789a',
  '123456789abc',
  '001122334455',
  'aabbccddeeff',
]);
const key_part_chars_max = 64;

/** Reads a GetDeviceInformationResponse as texts, since 007 and 1.0 are not numbers. */
export function informationOf(body: XmlNode): DeviceInformation {
  const read = (name: string): string | null =>
    textAt(body, 'getDeviceInformationResponse', name)?.slice(0, 200) ?? null;
  return {
    manufacturer: read('manufacturer'),
    model: read('model'),
    firmware: read('firmwareVersion'),
    serial: read('serialNumber'),
  };
}

/** @param addresses IPv4 addresses of the camera: some report one without its dots as their serial number. */
export function genuineSerial(
  { serial }: DeviceInformation,
  addresses: readonly string[],
): string | undefined {
  if (serial === null || placeholder.test(serial)) return undefined;
  return addresses.some((address) => address.replaceAll('.', '') === serial) ? undefined : serial;
}

/** The first hardware address of a GetNetworkInterfacesResponse, lower case with colons. */
export function macOf(body: XmlNode): string | undefined {
  const macs = everywhere(body, 'hwAddress').map(({ text }) =>
    text.toLowerCase().replaceAll(/[^0-9a-f]/gu, ''),
  );
  const mac = macs.find(
    (each) => each.length === 12 && !/^(?:0+|f+)$/u.test(each) && !default_macs.has(each),
  );
  return mac?.match(/../gu)?.join(':');
}

/** The IPv4 addresses of a GetNetworkInterfacesResponse. */
export function addressesOf(body: XmlNode): readonly string[] {
  return everywhere(body, 'address')
    .map(({ text }) => text)
    .filter(isIPv4);
}

export interface CameraNetwork {
  readonly mac: string | undefined;
  readonly addresses: readonly string[];
}

/**
 * Possible values of `asset_key`, the best first: the one of the options, else maker, model and serial number, which is
 * unique within a maker and a model only, else the MAC address. Earlier versions may have chosen the last.
 */
export function cameraKeys(
  information: DeviceInformation,
  { mac, addresses }: CameraNetwork,
  identity: string | undefined,
): readonly [string, ...string[]] {
  const serial = genuineSerial(information, addresses);
  const earlier = serial === undefined ? genuineSerial(information, []) : undefined;
  const [first, ...others] = [
    identity === undefined ? [] : `onvif:configured:${identity}`,
    serial === undefined ? [] : serialKey(information, serial),
    mac === undefined ? [] : macKey(mac),
  ].flat();
  if (first === undefined) throw new DeviceRejected(texts.no_identity);
  return [first, ...others, ...(earlier === undefined ? [] : [serialKey(information, earlier)])];
}

/** Identity of a camera without a separate serial number. */
export function macKey(mac: string): string {
  return `onvif:mac:${mac.replaceAll(':', '')}`;
}

function serialKey({ manufacturer, model }: DeviceInformation, serial: string): string {
  return `onvif:${[manufacturer, model, serial].map((part) => keyPart(part ?? 'unknown')).join(':')}`;
}

function keyPart(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9._]+/gu, '-');
  return plain.slice(0, key_part_chars_max);
}
