/** Pictures of cameras. They stay at the kit: only the service inside the daemon has a source of them (decision 0028). */

export interface ServedPicture {
  readonly jpeg: Buffer;
  /** Unix time in milliseconds. */
  readonly taken_ms: number;
}

/**
 * Returns a picture of this asset that is not older than `age_max_ms`. Rejects with `RequestProblem`: `not-found` where there
 * is none, `unavailable` when it cannot be taken now.
 */
export type PictureSource = (asset_id: string, age_max_ms: number) => Promise<ServedPicture>;
