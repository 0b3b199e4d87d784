/** Whether an asset delivers what it should, as its driver reports it. */

export type Health =
  /** `reason`: what is not proven yet. */
  | { readonly state: 'works'; readonly reason?: string | undefined }
  /** The device does not have it, or the configuration switches it off. */
  | { readonly state: 'not_offered'; readonly reason?: string | undefined }
  /** `reason`: the words of the device, then the remedy behind a semicolon. `retry_ms`: until the next try, which is reported again. */
  | { readonly state: 'fails'; readonly reason: string; readonly retry_ms?: number | undefined };

export const works: Health = { state: 'works' };

export function notOffered(reason?: string): Health {
  return { state: 'not_offered', reason };
}

export function fails(reason: string, retry_ms?: number): Health {
  return { state: 'fails', reason, retry_ms };
}
