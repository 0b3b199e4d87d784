/** What a simulated ONVIF camera is. */
export interface SimSettings {
  username: string;
  password: string;
  manufacturer: string;
  model: string;
  serial: string;
  firmware: string;
  mac: string;
  /** How far its clock is ahead, milliseconds. */
  skew_ms: number;
  /** How far the time that it reports as UTC is ahead of its clock, as where it is the local time. */
  reported_ahead_ms?: number;
  ptz: boolean;
  /** Its PTZ node has a lens that zooms. */
  zoom: boolean;
  presets: { token: string; name: string }[];
  /** Coordinates that its PTZ node has beside the velocities, or in place of them. */
  spaces?: SimSpace[];
  /** As its PTZ node reports it. */
  maximum_presets?: number;
  /** Its PTZ node describes no velocities. */
  hasNoVelocity?: boolean;
  home?: boolean;
  tours?: { token: string; name: string }[];
  /** It answers GetStatus only once it stands still (onvif/testspecs#132). */
  holdsStatus?: boolean;
  /** What its PTZ node, and its device service, take as auxiliary commands. */
  auxiliary?: string[];
  device_auxiliary?: string[];
  /** Tokens of its relay outputs. */
  relays?: string[];
  /** Its video sources; one, with the token VS0, when left out. */
  sources?: SimSource[];
  /** Which services it has beside the device service. */
  services: string[];
  /** Those of them that GetServices leaves out by mistake. */
  unlisted: string[];
  /** Knows GetServices; older ones know GetCapabilities only. */
  hasGetServices: boolean;
  /** It sees nothing for hours, as most cameras at night: each pull ends empty. */
  isQuiet?: boolean;
  /** Prefix of the SOAP envelope in its replies. */
  prefix: string;
  /** Reported address of its services, without a path; its own when undefined. `http://`: it has no host. */
  services_base?: string;
  /** Reported address of its pictures; undefined: it has none. Relative ones are below its own. */
  snapshot: string | undefined;
  /** Reported address of its streams, without a path. */
  rtsp_base: string;
}

export interface SimSpace {
  /** Such as AbsolutePanTiltPositionSpace. */
  name: string;
  /** End of its URI, such as PanTiltSpaces/PositionGenericSpace. */
  uri: string;
  x?: [min: number, max: number];
  y?: [min: number, max: number];
}

export interface SimSource {
  token: string;
  ptz: boolean;
  /** A channel without a camera: its profiles have no encoder, or GetVideoSources leaves it out. */
  absent?: 'no_encoder' | 'unlisted';
}

export interface SimRequest {
  /** Of a GET: `GET`. */
  readonly operation: string;
  readonly path: string;
  readonly body: string;
  readonly authorization: string | undefined;
}
