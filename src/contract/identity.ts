/** Identifiers that the kit and the cloud compute alike, without a round trip (RFC 9562 section 5.5). */
import { createHash } from 'node:crypto';

/** UUID version 5 of `name` in the namespace of the UUID `namespace`. */
function uuidV5(namespace: string, name: string): string {
  const hash = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name)
    .digest();
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** `asset_id` of the asset with this key on this kit: the same after a reinstall. */
export function assetId(kit_id: string, asset_key: string): string {
  return uuidV5(kit_id, asset_key);
}

export function commandId(kit_id: string, asset_key: string, command_name: string): string {
  return uuidV5(assetId(kit_id, asset_key), command_name);
}
