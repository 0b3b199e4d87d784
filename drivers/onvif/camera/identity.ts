/** Builds the identity of a camera from the hardware data that it reports. */
import { DeviceRejected } from '../../../src/errors.ts';
import { everywhere, textAt, type XmlNode } from '../soap/xml.ts';

export interface DeviceInformation {
  readonly manufacturer: string | null;
  readonly model: string | null;
  readonly firmware: string | null;
  readonly serial: string | null;
}

/** Placeholders of makers for a missing serial number. */
const placeholder =
  /^(?:[0x:.\s-]+|1234567(?:89?0?)?|none|null|unknown|n\/?a|serial(?: ?number)?|default|-+)$/iu;
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

export function genuineSerial({ serial }: DeviceInformation): string | undefined {
  return serial === null || placeholder.test(serial) ? undefined : serial;
}

/** The first hardware address of a GetNetworkInterfacesResponse, lower case with colons. */
export function macOf(body: XmlNode): string | undefined {
  const macs = everywhere(body, 'hwAddress').map(({ text }) =>
    text.toLowerCase().replaceAll(/[^0-9a-f]/gu, ''),
  );
  const mac = macs.find((each) => each.length === 12 && !/^(?:0+|f+)$/u.test(each));
  return mac?.match(/../gu)?.join(':');
}

/** `asset_key` of a camera. Serial numbers are unique within a maker and a model only. */
export function cameraKey(
  information: DeviceInformation,
  mac: string | undefined,
  identity: string | undefined,
): string {
  const serial = genuineSerial(information);
  if (serial !== undefined) {
    const parts = [information.manufacturer, information.model, serial];
    return `onvif:${parts.map((part) => keyPart(part ?? 'unknown')).join(':')}`;
  }
  if (mac !== undefined) return `onvif:mac:${mac.replaceAll(':', '')}`;
  if (identity !== undefined) return `onvif:configured:${identity}`;
  throw new DeviceRejected(
    'it reports neither a serial number nor a MAC address; set identity in the configuration',
  );
}

function keyPart(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9._]+/gu, '-');
  return plain.slice(0, key_part_chars_max);
}
