/**
 * Plays one WHEP stream (draft-ietf-wish-whep): receive only, no trickle. At the kit the address is that of its media server; elsewhere the service
 * takes the offer to the kit and names STUN and TURN servers.
 */
import { field, parseJson, textIn } from '../json.ts';
import { t } from '../words/words.ts';
import { rest } from './rest.ts';

const gathering_ms = 1_000;
/** A TURN server over TCP takes more round trips; its first candidate is enough. */
const gathering_relayed_ms = 3_000;
const answer_ms = 10_000;
/** The service waits 12 s for the kit. */
const answer_relayed_ms = 15_000;
/** The browser reports a blocked request only after it has failed. */
const blocked_ms = 100;
const look_every_ms = 1_000;
/** The peer can be gone while the connection state is still "connected": only decoded frames prove live video. */
const frozen_ms = 3_000;
const give_up_ms = 10_000;
const retry_first_ms = 1_000;
const retry_max_ms = 30_000;
/** After an answer that another attempt will not change soon: each costs bytes of the kit's link. */
const lasting_ms = 300_000;

export interface VideoState {
  /** `tap`: the browser requires a tap before it plays. */
  state: 'connecting' | 'playing' | 'frozen' | 'waiting' | 'tap';
  text: string;
  /** Decoded so far. */
  frames: number;
}

/** The stream cannot be played; the message has the reason. */
class NoVideo extends Error {
  readonly isLasting: boolean;

  constructor(reason: string, { isLasting = false }: { readonly isLasting?: boolean } = {}) {
    super(reason);
    this.isLasting = isLasting;
  }
}

/** Plays until the signal aborts, and tries again after each failure. */
export async function play(
  url: string,
  video: HTMLVideoElement,
  { signal, onState }: { readonly signal: AbortSignal; readonly onState: (state: VideoState) => void },
) {
  let pause_ms = retry_first_ms;
  while (!signal.aborted) {
    let frames = 0;
    let reason = t.video.ended;
    let isLasting = false;
    try {
      onState({ state: 'connecting', text: t.video.connecting, frames });
      await playOnce(url, video, {
        signal,
        onState: (state) => {
          frames = state.frames;
          onState(state);
        },
      });
    } catch (error) {
      reason = error instanceof NoVideo ? error.message : t.video.noAnswer;
      isLasting = error instanceof NoVideo && error.isLasting;
    }
    if (signal.aborted) return;
    if (frames > 0) pause_ms = retry_first_ms;
    if (isLasting) pause_ms = lasting_ms;
    onState({
      state: 'waiting',
      text: t.video.retry({ reason, s: Math.round(pause_ms / 1_000) }),
      frames,
    });
    const over = new AbortController();
    // Back in a network: what failed for want of one is tried at once.
    if (!isLasting) addEventListener('online', () => over.abort(), { signal: over.signal });
    await rest(pause_ms, AbortSignal.any([signal, over.signal]));
    over.abort();
    pause_ms = Math.min(retry_max_ms, pause_ms * 2);
  }
}

/** `URL.parse`, which browsers before Safari 18 and Chrome 126 do not have. */
function parsed(url: string, base?: string) {
  return URL.canParse(url, base) ? new URL(url, base) : null;
}

/** Checks the address, which comes from the kit: http or https without a password. The content security policy limits the servers. */
function demandWebAddress(url: string) {
  const { protocol, username, password } = parsed(url, location.href) ?? {};
  if (protocol !== 'http:' && protocol !== 'https:') throw new NoVideo(t.video.notWeb);
  if (username || password) throw new NoVideo(t.video.password);
}

async function playOnce(
  url: string,
  video: HTMLVideoElement,
  { signal, onState }: { readonly signal: AbortSignal; readonly onState: (state: VideoState) => void },
) {
  demandWebAddress(url);
  if (typeof RTCPeerConnection === 'undefined') throw new NoVideo(t.video.noWebRtc, { isLasting: true });
  const isRelayed = parsed(url, location.href)?.origin === location.origin;
  const iceServers = isRelayed ? await iceServersOf(url, signal) : [];
  const hasTurn = iceServers.some(({ credential }) => credential !== undefined);
  const peer = new RTCPeerConnection({ iceServers });
  let resource: string | undefined;
  try {
    const stream = new MediaStream();
    peer.addTransceiver('video', { direction: 'recvonly' });
    peer.addTransceiver('audio', { direction: 'recvonly' });
    peer.ontrack = ({ track }) => stream.addTrack(track);
    await peer.setLocalDescription(await peer.createOffer());
    await gathered(peer, signal, hasTurn);
    const offered = peer.localDescription?.sdp ?? '';
    const { answer, resource: created } = await offer(url, offered, {
      signal,
      isRelayed,
    });
    resource = created;
    // A media server that sends only what this browser cannot play rejects the video and keeps the sound.
    if (/^m=video 0 /mu.test(answer)) throw new NoVideo(codecFault(offered), { isLasting: true });
    await peer.setRemoteDescription({ type: 'answer', sdp: answer });
    video.onloadeddata = () => onState({ state: 'playing', text: t.video.live, frames: 1 });
    video.srcObject = stream;
    const isBlocked = await video.play().then(
      () => false,
      (error: unknown) => error instanceof DOMException && error.name === 'NotAllowedError',
    );
    if (isBlocked) onState({ state: 'tap', text: t.video.tap, frames: 0 });
    await watch(peer, { signal, onState, lost: isRelayed && !hasTurn ? t.video.noTurn : t.video.failed });
  } finally {
    video.onloadeddata = null;
    video.srcObject = null;
    peer.close();
    if (resource !== undefined)
      void fetch(resource, { method: 'DELETE', keepalive: true, headers: headersOf(isRelayed) }).catch(
        () => undefined,
      );
  }
}

/** Waits for the ICE candidates, for a limited time: without a network the gathering may never end. */
async function gathered(peer: RTCPeerConnection, signal: AbortSignal, hasTurn: boolean) {
  if (peer.iceGatheringState === 'complete') return;
  const done = new AbortController();
  peer.addEventListener('icecandidate', ({ candidate }) => {
    // Picture and sound go over the transport of the first of them (BUNDLE, RFC 9143): a candidate of the other is of no use.
    if (candidate?.type === 'relay' && candidate.sdpMLineIndex === 0) done.abort();
  });
  peer.addEventListener('icegatheringstatechange', () => {
    if (peer.iceGatheringState === 'complete') done.abort();
  });
  await rest(hasTurn ? gathering_relayed_ms : gathering_ms, AbortSignal.any([signal, done.signal]));
}

/** A form of another site cannot send these. The media server of a kit knows none of them. */
function headersOf(isRelayed: boolean): Record<string, string> {
  return isRelayed ? { 'X-Kit-Page': '1', 'Content-Type': 'application/sdp' } : {};
}

/** The servers that the service names in `Link` headers (RFC 9725, section 4.6). */
async function iceServersOf(url: string, signal: AbortSignal): Promise<RTCIceServer[]> {
  const timeout = AbortSignal.timeout(answer_ms);
  const response = await fetch(url, {
    method: 'OPTIONS',
    headers: headersOf(true),
    signal: AbortSignal.any([signal, timeout]),
  });
  const links = response.headers.get('Link') ?? '';
  return Array.from(links.matchAll(/<([^>]+)>;([^<]*)/gu), ([, urls = '', parameters = '']) => {
    const value = (name: string) => new RegExp(`${name}="([^"]*)"`, 'u').exec(parameters)?.[1];
    const [username, credential] = [value('username'), value('credential')];
    return username === undefined || credential === undefined ? { urls } : { urls, username, credential };
  });
}

/** What the service or the kit says, by the type of the problem (RFC 9457). */
function refusedByService(status: number, problem: unknown, sdp: string): NoVideo {
  const detail = textIn(field(problem, 'detail'));
  const kind = textIn(field(problem, 'type')).replace('/problems/', '');
  const words: Record<string, string> = {
    'link-forbids': t.video.link,
    'not-playable': codecFault(sdp),
    'not-found': t.video.noneAtKit,
    'no-answer': t.video.kitSilent,
    unavailable: t.video.notNow,
  };
  const isLasting = kind === 'link-forbids' || kind === 'not-playable' || kind === 'not-found';
  const said = words[kind] ?? t.trouble.answered(status);
  return new NoVideo(detail === '' ? said : `${said} (${detail})`, { isLasting });
}

/** A browser without the decoder, as a Firefox without codecs of its system, cannot play what a camera of ours should send. */
function codecFault(offered: string): string {
  return offered.includes(' H264/') ? t.video.codec : t.video.noH264;
}

async function offer(
  url: string,
  sdp: string,
  { signal, isRelayed }: { readonly signal: AbortSignal; readonly isRelayed: boolean },
) {
  const response = await withBlockedReason(url, signal, async () =>
    fetch(url, {
      method: 'POST',
      headers: { ...headersOf(isRelayed), 'Content-Type': 'application/sdp' },
      body: sdp,
      signal: AbortSignal.any([signal, AbortSignal.timeout(isRelayed ? answer_relayed_ms : answer_ms)]),
    }),
  );
  const answer = await response.text();
  if (isRelayed && response.status !== 201) throw refusedByService(response.status, parseJson(answer), sdp);
  if (response.status === 404) throw new NoVideo(t.video.noStream);
  if (response.status === 400 || response.status === 406) {
    throw new NoVideo(codecFault(sdp));
  }
  if (response.status !== 201) throw new NoVideo(t.video.answered(response.status));
  const named = response.headers.get('Location');
  const resource = named === null ? null : parsed(named, response.url);
  // A media server must not name a resource of another server for deletion.
  return { answer, resource: resource?.origin === new URL(response.url).origin ? resource.href : undefined };
}

/** Reports a request that the content security policy has blocked; to the request itself it looks like an unreachable server. */
async function withBlockedReason<T>(url: string, signal: AbortSignal, send: () => Promise<T>): Promise<T> {
  let isBlockedByPolicy = false;
  const over = new AbortController();
  const note = ({ blockedURI }: SecurityPolicyViolationEvent) => {
    if (parsed(blockedURI)?.origin === new URL(url, location.href).origin) isBlockedByPolicy = true;
  };
  document.addEventListener('securitypolicyviolation', note, { signal: over.signal });
  try {
    return await send();
  } catch (error) {
    await rest(blocked_ms, signal);
    if (isBlockedByPolicy) throw new NoVideo(t.video.blocked);
    throw error;
  } finally {
    over.abort();
  }
}

/** Returns when the picture has ended or has not moved for too long. */
async function watch(
  peer: RTCPeerConnection,
  {
    signal,
    onState,
    lost,
  }: {
    readonly signal: AbortSignal;
    readonly onState: (state: VideoState) => void;
    /** What is said of a connection that failed. */
    readonly lost: string;
  },
) {
  let frames = 0;
  let wasConnected = peer.connectionState === 'connected';
  peer.addEventListener('connectionstatechange', () => {
    wasConnected ||= peer.connectionState === 'connected';
  });
  let moved_ms = performance.now();
  // MediaMTX ends a stream that browsers cannot play, such as with B-frames, once it is connected (bluenviron/mediamtx#1491).
  const without = () => (wasConnected ? t.video.noPicture : lost);
  while (!signal.aborted) {
    await rest(look_every_ms, signal);
    const decoded = await framesDecoded(peer);
    const now_ms = performance.now();
    if (decoded > frames) moved_ms = now_ms;
    frames = Math.max(frames, decoded);
    const still_ms = now_ms - moved_ms;
    if (still_ms > give_up_ms) throw new NoVideo(frames > 0 ? t.video.stopped : without());
    if (peer.connectionState === 'failed' || peer.connectionState === 'closed')
      throw new NoVideo(frames > 0 ? lost : without());
    if (frames > 0 && still_ms > frozen_ms) {
      onState({ state: 'frozen', text: t.video.frozen(Math.round(still_ms / 1_000)), frames });
    } else if (frames > 0) {
      onState({ state: 'playing', text: t.video.live, frames });
    }
  }
}

async function framesDecoded(peer: RTCPeerConnection) {
  let frames = 0;
  for (const report of (await peer.getStats()).values()) {
    const value: unknown = report;
    if (isInboundVideo(value)) frames += value.framesDecoded ?? 0;
  }
  return frames;
}

function isInboundVideo(report: unknown): report is RTCInboundRtpStreamStats {
  return (
    typeof report === 'object' &&
    report !== null &&
    Reflect.get(report, 'type') === 'inbound-rtp' &&
    Reflect.get(report, 'kind') === 'video'
  );
}
