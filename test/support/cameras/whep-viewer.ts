/** A viewer of a WHEP address: a real WebRTC peer that counts the packets of video that it receives. */
import { RTCPeerConnection, RTCRtpCodecParameters } from 'werift';
import { within } from '../../../src/platform/time.ts';

const h264 = new RTCRtpCodecParameters({
  mimeType: 'video/H264',
  clockRate: 90_000,
  payloadType: 96,
  parameters: 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
});
const patience_ms = 15_000;

interface WatchOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Relays over TURN by UDP, as an authenticated OPTIONS names it. */
  readonly relays?: boolean;
  /** False: it goes without the `DELETE`. */
  readonly leaves?: boolean;
}

/** Resolves with the number of RTP packets once `enough` have come; rejects when they do not come. */
export async function watchWhep(
  url: string,
  enough: number,
  { headers = {}, relays = false, leaves = true }: WatchOptions = {},
): Promise<number> {
  const iceServers = relays ? await turnOf(url, headers) : [];
  const viewer = new RTCPeerConnection({ iceServers, codecs: { video: [h264] } });
  try {
    let packets = 0;
    const seen = new Promise<true>((resolve) => {
      viewer.onTrack.subscribe((track) => {
        track.onReceiveRtp.subscribe(() => {
          packets += 1;
          if (packets === enough) resolve(true);
        });
      });
    });
    viewer.addTransceiver('video', { direction: 'recvonly' });
    await viewer.setLocalDescription(await viewer.createOffer());
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/sdp', ...headers },
      body: viewer.localDescription?.sdp ?? '',
    });
    if (response.status !== 201) throw new Error(`${url} answers ${response.status} to an offer`);
    await viewer.setRemoteDescription({ type: 'answer', sdp: await response.text() });
    if (!(await within(patience_ms, seen))) throw new Error(`${packets} of ${enough} packets came`);
    const location = response.headers.get('location');
    if (leaves && location !== null) await fetch(new URL(location, url), { method: 'DELETE', headers });
    return packets;
  } finally {
    await viewer.close();
  }
}

async function turnOf(url: string, headers: Readonly<Record<string, string>>) {
  const link = (await fetch(url, { method: 'OPTIONS', headers })).headers.get('link') ?? '';
  const named = /<(turn:[^>]+transport=udp)>[^<]*username="([^"]+)"; credential="([^"]+)"/u.exec(link);
  const [, urls = '', username = '', credential = ''] = named ?? [];
  return [{ urls, username, credential }];
}
