/** Passes every message accepted for delivery to listeners, in the format of the control socket. */
import { z } from 'zod';
import { jsonObject } from '../contract/json.ts';
import type { TailMessage } from '../local/api.ts';
import type { Row } from '../outbox/row.ts';

export interface TailAsset {
  readonly id: string;
  readonly key: string;
  readonly name: string;
}

export class Tail {
  readonly #listeners = new Set<(message: TailMessage) => void>();
  readonly #assetNamed: (asset_id: string) => TailAsset | undefined;

  constructor(assetNamed: (asset_id: string) => TailAsset | undefined) {
    this.#assetNamed = assetNamed;
  }

  listen(listener: (message: TailMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Costs nothing without listeners. */
  publish(row: Row): void {
    if (this.#listeners.size === 0) return;
    const [kind = '', id, feed] = row.channel.split('/');
    const asset = this.#assetNamed(id ?? '');
    const message: TailMessage = {
      kind: 'message',
      time: new Date(row.time_ms).toISOString(),
      channel: row.channel,
      asset: asset ? { id: asset.id, key: asset.key, name: asset.name } : null,
      feed: feed ?? kind,
      data: nullableObject.parse(JSON.parse(row.body)),
    };
    for (const listener of this.#listeners) listener(message);
  }
}

const nullableObject = z.nullable(jsonObject);
