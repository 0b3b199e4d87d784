/** Signs and verifies MAVLink 2 frames with a clock that never goes back, not even over a restart. */

/** Appends the signature to a frame whose flag and checksum already say that it is signed. */
export type SignFrame = (frame: Uint8Array) => Uint8Array;

export interface Signing {
  /** The signer of one link. Links have different ids (0 to 255), since frames of two may arrive in another order. */
  signer(link_id: number): SignFrame;
  /** True once for each genuine frame: false for another key and for what was heard before. */
  verify(bytes: Uint8Array): boolean;
}
