/** Video of the kit: the streams of its cameras on its media server, and the viewers of the cloud. */
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { WhepAnswer, WhepRequest } from '../../contract/whep.ts';
import type { Hub } from '../hub/hub.ts';
import type { Streams } from '../hub/assets/assets.ts';
import type { Recordings } from '../hub/assets/clips.ts';
import { go2rtc } from '../media/go2rtc.ts';
import { createMedia, type MediaOptions, streamName, templateMedia, templateServer } from '../media/media.ts';
import { mediaMtx } from '../media/mediamtx.ts';
import { recordedClip } from '../media/recordings.ts';
import { texts as media_texts } from '../media/texts.ts';
import { type VideoUse, Viewers, type ViewersOptions } from '../media/viewers.ts';
import type { Log } from '../../platform/log/log.ts';
import { notOffered } from '../../toolkit/driver/health.ts';
import type { LowBattery } from './low-battery.ts';
import { texts } from './texts.ts';

const usage_file = 'video.json';

export interface Video {
  readonly ofCameras: {
    readonly streams: Streams;
    /** Undefined: the media server does not record. */
    readonly recordings: Recordings | undefined;
  };
  /** A request of the cloud; undefined: it needs no answer. `queued`: the broker may have kept it while the kit was away. */
  readonly receive: (
    request: WhepRequest,
    how: { readonly queued: boolean },
  ) => Promise<WhepAnswer | undefined>;
  /** Undefined: there is no media server. */
  readonly use: () => VideoUse | undefined;
}

interface VideoParts
  extends Pick<MediaOptions, 'onUrl' | 'signal'>, Pick<ViewersOptions, 'grant' | 'publicAddress' | 'today'> {
  readonly config: Pick<Config, 'media' | 'state_dir'>;
  readonly low_battery: LowBattery;
  readonly hub: () => Pick<Hub, 'assetNamed' | 'requestKeyFrame'>;
  readonly log: Log;
}

/** Runs until the signal aborts. Without a media section no asset has a stream for viewers. */
export function openVideo({ config, low_battery, hub, ...parts }: VideoParts): Video {
  const { log } = parts;
  const { media } = config;
  if (!media) {
    return {
      ofCameras: { streams: low_battery.streams(no_streams), recordings: undefined },
      receive: async (request) =>
        request.offer !== null ? { refused: 'no_stream', reason: media_texts.no_media_server } : undefined,
      use: () => undefined,
    };
  }
  const { server, inner } = openMedia(media, { ...parts, log });
  const streams = low_battery.streams(inner);
  const streamOf: ViewersOptions['streamOf'] = (asset_id) => {
    const asset_key = hub().assetNamed(asset_id)?.key;
    if (asset_key === undefined) return { none: media_texts.no_asset };
    if (streams.urlOf(asset_key) !== null) return { name: streamName(asset_key) };
    const health = streams.healthOf(asset_key);
    return { none: (health && 'reason' in health && health.reason) || media_texts.no_video };
  };
  const viewers = new Viewers({
    ...parts,
    server,
    streamOf,
    requestKeyFrame: async (asset_id) => hub().requestKeyFrame(asset_id),
    file: join(config.state_dir, usage_file),
  });
  return {
    ofCameras: { streams, recordings: recordingsOf(media) },
    async receive(request, { queued }) {
      const isOld = queued && request.offer !== null;
      return isOld ? { refused: 'unavailable', reason: media_texts.reconnected } : viewers.receive(request);
    },
    use: () => viewers.use,
  };
}

function recordingsOf(media: NonNullable<Config['media']>): Recordings | undefined {
  if (media.server !== 'mediamtx' || !media.recording) return undefined;
  const { playback_url: api_url, ...recording } = media.recording;
  const { username, password } = media;
  return {
    ...recording,
    clip: async (asset_key, when, signal) =>
      recordedClip({ api_url, username, password }, { ...when, name: streamName(asset_key) }, signal),
  };
}

function openMedia(media: NonNullable<Config['media']>, parts: Omit<MediaOptions, 'server'>) {
  if (media.server === 'template')
    return { server: templateServer(media.url), inner: templateMedia(media.url, parts.onUrl) };
  const server = media.server === 'go2rtc' ? go2rtc(media) : mediaMtx(media);
  return { server, inner: createMedia({ ...parts, server }) };
}

const no_streams: Streams = {
  want: () => undefined,
  urlOf: () => null,
  healthOf: () => notOffered(texts.no_media),
};
