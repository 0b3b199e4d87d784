/** What a media server is to the connector: it fetches a camera's RTSP stream and serves it to viewers by WHEP. */

export interface MediaServer {
  /** Shown in logs. */
  readonly name: string;
  /** True when the server has this very stream under this name. Rejects when the server does not answer. */
  readonly has: (stream: Stream, signal: AbortSignal) => Promise<boolean>;
  /** Adds or replaces. Rejects with `StreamRefused` when the server does not take it, with any other error when it does not answer. */
  readonly put: (stream: Stream, signal: AbortSignal) => Promise<void>;
  /** Forgets the stream; no error when there is none. */
  readonly remove: (name: string, signal: AbortSignal) => Promise<void>;
  /** Where viewers find it. Holds no credentials. */
  readonly whepUrl: (name: string) => string;
}

export interface Stream {
  readonly name: string;
  /** With the camera's credentials. */
  readonly rtsp_url: string;
}

/** The media server answered, and does not take the stream. */
export class StreamRefused extends Error {
  override readonly name = 'StreamRefused';
}
