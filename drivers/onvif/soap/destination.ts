/** Where the requests of one connection go. */
import { isIP } from 'node:net';
import type { DeviceName } from '../../../src/device/device-name.ts';

type OfCamera = Pick<DeviceName, 'lookup' | 'reached'>;

/**
 * A host name is resolved once for each connection: it may lead to another camera later, which would be mistaken for the
 * identified camera.
 */
export class Destination {
  readonly #name: OfCamera | undefined;
  readonly #isName: boolean;
  #address: string | undefined;
  #peer: string | undefined;

  /** @param host As configured; an IPv6 address may have a zone. */
  constructor(host: string, name?: OfCamera) {
    this.#name = name;
    this.#isName = isIP(host) === 0;
    this.#address = this.#isName ? undefined : host;
  }

  /** For the first contact. */
  get lookup(): DeviceName['lookup'] | undefined {
    return this.#name?.lookup;
  }

  /** Undefined for a name that was not contacted yet. */
  get address(): string | undefined {
    return this.#address;
  }

  /** IP address of the camera, once it has answered. */
  get peer(): string | undefined {
    return this.#peer;
  }

  /** The camera answered from this address. */
  answered(address: string | undefined): void {
    this.#peer = address ?? this.#peer;
    this.#name?.reached(address);
    if (this.#isName) this.#address ??= address;
  }
}
