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
  /** Gives it what the configuration wants it to have beside streams; left out: nothing. */
  readonly prepare?: (signal: AbortSignal) => Promise<void>;
  /** Answers the offer of a viewer. Rejects with `OfferRefused`, with any other error when the server does not answer. */
  readonly watch: (name: string, offer: string, signal: AbortSignal) => Promise<Viewing>;
  /** Ends what `watch` began, as far as the server can. */
  readonly leave: (viewing: Pick<Viewing, 'resource' | 'session'>, signal: AbortSignal) => Promise<void>;
  /** Bytes that it has sent to each viewer that it still has, by `session`; left out: it cannot end viewers, or does not count. */
  readonly sent?: (signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
}

/** A viewer that the server has accepted. */
export interface Viewing {
  /** SDP. */
  readonly answer: string;
  /** Address whose `DELETE` ends it; null: the server gave none. */
  readonly resource: string | null;
  /** Its id in the API of the server. */
  readonly session: string | null;
}

export interface Stream {
  readonly name: string;
  /** With the camera's credentials. */
  readonly rtsp_url: string;
}

/** The media server answered, and there is no video for this viewer. */
export class OfferRefused extends Error {
  override readonly name = 'OfferRefused';
  readonly refused: 'codec' | 'unavailable';

  constructor(refused: OfferRefused['refused'], reason: string) {
    super(reason);
    this.refused = refused;
  }
}

/** The media server answered, and does not take the stream. */
export class StreamRefused extends Error {
  override readonly name = 'StreamRefused';
}
