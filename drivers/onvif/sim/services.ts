/** What the simulated ONVIF camera answers: device, media, Media2 and PTZ, as ONVIF Core, Media and PTZ specify. */
import type { ServerResponse } from 'node:http';
import { sleep } from '../../../src/platform/time.ts';
import { escapeXml } from '../soap/xml.ts';
import type { SimMotor } from './motor.ts';
import type { SimRequest, SimSettings, SimSource, SimSpace } from './settings.ts';

/** The operation's response element, or a fault; undefined where the operation sends its answer itself or none. */
export type Soap = (
  request: SimRequest,
  response: ServerResponse,
) => Answer | undefined | Promise<Answer | undefined>;
type Answer = string | { readonly fault: string; readonly reason?: string };

interface Served {
  readonly base: string;
  readonly settings: SimSettings;
  /** Of the video source; that of the first one where it is not known. */
  motorOf(source: string): SimMotor;
  /** Relays and auxiliary functions, as they were switched last. */
  readonly switched: Map<string, string>;
}

export function envelope(body: string, prefix: string): string {
  const p = prefix;
  const spaces = [
    `xmlns:${p}="http://www.w3.org/2003/05/soap-envelope"`,
    'xmlns:tt="http://www.onvif.org/ver10/schema"',
    'xmlns:tds="http://www.onvif.org/ver10/device/wsdl"',
    'xmlns:trt="http://www.onvif.org/ver10/media/wsdl"',
    'xmlns:tr2="http://www.onvif.org/ver20/media/wsdl"',
    'xmlns:tmd="http://www.onvif.org/ver10/deviceIO/wsdl"',
    'xmlns:tptz="http://www.onvif.org/ver20/ptz/wsdl"',
    'xmlns:tev="http://www.onvif.org/ver10/events/wsdl"',
    'xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"',
    'xmlns:wsa="http://www.w3.org/2005/08/addressing"',
    'xmlns:tns1="http://www.onvif.org/ver10/topics"',
    'xmlns:ter="http://www.onvif.org/ver10/error"',
    "xmlns:axis='http://www.axis.com/2009/event'",
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${p}:Envelope ${spaces.join(' ')}><${p}:Body>${body}</${p}:Body></${p}:Envelope>`;
}

export function fault(subcode: string, reason: string, prefix: string): string {
  const p = prefix;
  const code = `<${p}:Code><${p}:Value>${p}:Sender</${p}:Value><${p}:Subcode><${p}:Value>${subcode}</${p}:Value></${p}:Subcode></${p}:Code>`;
  return envelope(
    `<${p}:Fault>${code}<${p}:Reason><${p}:Text xml:lang="en">${reason}</${p}:Text></${p}:Reason></${p}:Fault>`,
    p,
  );
}

const paths: Readonly<Record<string, string>> = {
  device: 'ver10/device',
  media: 'ver10/media',
  media2: 'ver20/media',
  ptz: 'ver20/ptz',
  events: 'ver10/events',
  deviceio: 'ver10/deviceIO',
};
const main = { width: 2560, height: 1440 };
const sub = { width: 640, height: 360 };

export function soapOperations(camera: Served): Readonly<Record<string, Soap>> {
  const { settings } = camera;
  const xaddr = (name: string): string => `${settings.services_base ?? camera.base}/onvif/${name}`;
  return {
    GetSystemDateAndTime: () =>
      dateAndTime(new Date(Date.now() + settings.skew_ms + (settings.reported_ahead_ms ?? 0))),
    GetDeviceInformation: () =>
      `<tds:GetDeviceInformationResponse><tds:Manufacturer>${settings.manufacturer}</tds:Manufacturer><tds:Model>${settings.model}</tds:Model>` +
      `<tds:FirmwareVersion>${settings.firmware}</tds:FirmwareVersion><tds:SerialNumber>${settings.serial}</tds:SerialNumber><tds:HardwareId>1.0</tds:HardwareId></tds:GetDeviceInformationResponse>`,
    GetServices: () =>
      settings.hasGetServices
        ? `<tds:GetServicesResponse>${[
            'device',
            ...settings.services.filter((name) => !settings.unlisted.includes(name)),
          ]
            .map(
              (name) =>
                `<tds:Service><tds:Namespace>http://www.onvif.org/${paths[name]}/wsdl</tds:Namespace><tds:XAddr>${xaddr(name)}</tds:XAddr></tds:Service>`,
            )
            .join('')}</tds:GetServicesResponse>`
        : { fault: 'ter:ActionNotSupported' },
    GetCapabilities: () => {
      const named = settings.services.map((name) => {
        const element = name === 'ptz' ? 'PTZ' : `${name[0]?.toUpperCase()}${name.slice(1)}`;
        return `<tt:${element}><tt:XAddr>${xaddr(name)}</tt:XAddr></tt:${element}>`;
      });
      return `<tds:GetCapabilitiesResponse><tds:Capabilities>${named.join('')}</tds:Capabilities></tds:GetCapabilitiesResponse>`;
    },
    GetNetworkInterfaces: () =>
      `<tds:GetNetworkInterfacesResponse><tds:NetworkInterfaces token="eth0"><tt:Enabled>true</tt:Enabled><tt:Info><tt:Name>eth0</tt:Name><tt:HwAddress>${settings.mac}</tt:HwAddress></tt:Info></tds:NetworkInterfaces></tds:GetNetworkInterfacesResponse>`,
    GetProfiles: ({ path }) => (path.endsWith('media2') ? profiles2(settings) : profiles(settings)),
    GetVideoSources: ({ path }) => {
      const tokens = sourcesOf(settings).flatMap(({ token, absent }) => (absent === 'unlisted' ? [] : token));
      return path.endsWith('deviceio')
        ? `<tmd:GetVideoSourcesResponse>${tokens.map((token) => `<tmd:Token>${token}</tmd:Token>`).join('')}</tmd:GetVideoSourcesResponse>`
        : `<trt:GetVideoSourcesResponse>${tokens.map((token) => `<trt:VideoSources token="${token}"><tt:Framerate>25</tt:Framerate></trt:VideoSources>`).join('')}</trt:GetVideoSourcesResponse>`;
    },
    GetServiceCapabilities: () =>
      `<tds:GetServiceCapabilitiesResponse><tds:Capabilities><tds:Misc AuxiliaryCommands="${(settings.device_auxiliary ?? []).join(' ')}"/></tds:Capabilities></tds:GetServiceCapabilitiesResponse>`,
    GetRelayOutputs: () =>
      settings.relays
        ? `<tds:GetRelayOutputsResponse>${settings.relays.map((token) => `<tds:RelayOutputs token="${token}"><tt:Properties><tt:Mode>Bistable</tt:Mode></tt:Properties></tds:RelayOutputs>`).join('')}</tds:GetRelayOutputsResponse>`
        : { fault: 'ter:ActionNotSupported' },
    SetRelayOutputState: ({ body }) => {
      camera.switched.set(valueIn(body, 'RelayOutputToken'), valueIn(body, 'LogicalState'));
      return '<tds:SetRelayOutputStateResponse/>';
    },
    SendAuxiliaryCommand: ({ path, body }) => {
      const isMotor = path.endsWith('ptz');
      const command = valueIn(body, isMotor ? 'AuxiliaryData' : 'AuxiliaryCommand');
      const known = isMotor ? settings.auxiliary : settings.device_auxiliary;
      if (!known?.includes(command)) return { fault: 'ter:AuxiliaryDataNotSupported' };
      const [what = '', state = ''] = command.split('|');
      camera.switched.set(what, state);
      return isMotor ? '<tptz:SendAuxiliaryCommandResponse/>' : '<tds:SendAuxiliaryCommandResponse/>';
    },
    GetStreamUri: ({ path, body }) => {
      const token = /ProfileToken>([^<]*)</u.exec(body)?.[1] ?? '';
      const uri = `${settings.rtsp_base}/${token}`;
      return path.endsWith('media2')
        ? `<tr2:GetStreamUriResponse><tr2:Uri>${uri}</tr2:Uri></tr2:GetStreamUriResponse>`
        : `<trt:GetStreamUriResponse><trt:MediaUri><tt:Uri>${uri}</tt:Uri></trt:MediaUri></trt:GetStreamUriResponse>`;
    },
    GetSnapshotUri: ({ path }) => {
      const { snapshot } = settings;
      if (snapshot === undefined) return { fault: 'ter:ActionNotSupported' };
      const uri = escapeXml(snapshot.startsWith('/') ? `${camera.base}${snapshot}` : snapshot);
      return path.endsWith('media2')
        ? `<tr2:GetSnapshotUriResponse><tr2:Uri>${uri}</tr2:Uri></tr2:GetSnapshotUriResponse>`
        : `<trt:GetSnapshotUriResponse><trt:MediaUri><tt:Uri>${uri}</tt:Uri></trt:MediaUri></trt:GetSnapshotUriResponse>`;
    },
    ...ptzOperations(camera),
  };
}

/** Text of an element of a request. */
function valueIn(body: string, name: string): string {
  return new RegExp(`<(?:\\w+:)?${name}(?:\\s[^>]*)?>([^<]*)<`, 'u').exec(body)?.[1] ?? '';
}

function ptzOperations(camera: Served): Readonly<Record<string, Soap>> {
  const { settings } = camera;
  const motorIn = (body: string): SimMotor => camera.motorOf(sourceOfProfile(valueIn(body, 'ProfileToken')));
  return {
    GetNodes: () => {
      const zoom = settings.zoom
        ? '<tt:ContinuousZoomVelocitySpace><tt:URI>z</tt:URI></tt:ContinuousZoomVelocitySpace>'
        : '';
      const move =
        '<tt:ContinuousPanTiltVelocitySpace><tt:URI>p</tt:URI></tt:ContinuousPanTiltVelocitySpace>';
      const velocities = settings.hasNoVelocity === true ? '' : `${move}${zoom}`;
      const spaces = `${velocities}${(settings.spaces ?? []).map(space).join('')}`;
      const auxiliary = (settings.auxiliary ?? [])
        .map((command) => `<tt:AuxiliaryCommands>${command}</tt:AuxiliaryCommands>`)
        .join('');
      const tours = `<tt:Extension><tt:SupportedPresetTour><tt:MaximumNumberOfPresetTours>${settings.tours?.length ?? 0}</tt:MaximumNumberOfPresetTours></tt:SupportedPresetTour></tt:Extension>`;
      return `<tptz:GetNodesResponse><tptz:PTZNode token="N"><tt:SupportedPTZSpaces>${spaces}</tt:SupportedPTZSpaces><tt:MaximumNumberOfPresets>${settings.maximum_presets ?? 8}</tt:MaximumNumberOfPresets><tt:HomeSupported>${settings.home === true}</tt:HomeSupported>${auxiliary}${tours}</tptz:PTZNode></tptz:GetNodesResponse>`;
    },
    GetPresets: () =>
      `<tptz:GetPresetsResponse>${settings.presets
        .map(
          ({ token, name }) =>
            `<tptz:Preset token="${escapeXml(token)}"><tt:Name>${escapeXml(name)}</tt:Name></tptz:Preset>`,
        )
        .join('')}</tptz:GetPresetsResponse>`,
    GetPresetTours: ({ body }) => {
      const { tour } = motorIn(body);
      const listed = (settings.tours ?? []).map(
        ({ token, name }) =>
          `<tptz:PresetTour token="${token}"><tt:Name>${name}</tt:Name><tt:Status><tt:State>${tour === token ? 'Touring' : 'Idle'}</tt:State></tt:Status></tptz:PresetTour>`,
      );
      return `<tptz:GetPresetToursResponse>${listed.join('')}</tptz:GetPresetToursResponse>`;
    },
    OperatePresetTour: ({ body }) => {
      const isStart = valueIn(body, 'Operation') === 'Start';
      motorIn(body).tour = isStart ? valueIn(body, 'PresetTourToken') : undefined;
      return '<tptz:OperatePresetTourResponse/>';
    },
    GotoPreset: ({ body }) => {
      const written = /PresetToken>([^<]*)</u.exec(body)?.[1];
      motorIn(body).goTo(
        written,
        settings.presets.findIndex(({ token }) => escapeXml(token) === written),
      );
      return '<tptz:GotoPresetResponse/>';
    },
    GotoHomePosition: ({ body }) => {
      if (settings.home !== true) return { fault: 'ter:NoHomePosition' };
      motorIn(body).goTo(undefined, 0);
      return '<tptz:GotoHomePositionResponse/>';
    },
    ContinuousMove: ({ body }) => {
      if (settings.hasNoVelocity === true) return { fault: 'ter:SpaceNotSupported' };
      const motor = motorIn(body);
      const [, zoom] = /<(?:\w+:)?Zoom [^>]*x="([^"]*)"/u.exec(body) ?? [];
      const [, x, y] = /x="([^"]*)" y="([^"]*)"/u.exec(body) ?? [];
      if (zoom === undefined) motor.move(Number(x), Number(y));
      else motor.zoom = Number(zoom);
      return '<tptz:ContinuousMoveResponse/>';
    },
    AbsoluteMove: ({ body }) => {
      motorIn(body).travel(vectorIn(body));
      return '<tptz:AbsoluteMoveResponse/>';
    },
    RelativeMove: ({ body }) => {
      const motor = motorIn(body);
      const { x = 0, y = 0, zoom = 0 } = vectorIn(body);
      motor.travel({ x: motor.way.x + x, y: motor.way.y + y, zoom: motor.way.zoom + zoom });
      return '<tptz:RelativeMoveResponse/>';
    },
    Stop: ({ body }) => {
      motorIn(body).stop();
      return '<tptz:StopResponse/>';
    },
    async GetStatus({ body }, response) {
      const motor = motorIn(body);
      const gone = new AbortController();
      response.on('close', () => gone.abort());
      while (settings.holdsStatus === true && motor.isMoving && !gone.signal.aborted) {
        await sleep(held_step_ms, gone.signal);
      }
      const { pan_deg, tilt_deg } = motor.position;
      const { x, y, zoom } = motor.way;
      const isPlaced = settings.spaces?.some(({ name }) => name.startsWith('Absolute'));
      const at = isPlaced
        ? `<tt:Position><tt:PanTilt x="${x}" y="${y}"/><tt:Zoom x="${zoom}"/></tt:Position>`
        : `<tt:Position><tt:PanTilt x="${pan_deg / 180}" y="${tilt_deg / 90}"/></tt:Position>`;
      const state = motor.isMoving ? 'MOVING' : 'IDLE';
      return `<tptz:GetStatusResponse><tptz:PTZStatus>${at}<tt:MoveStatus><tt:PanTilt>${state}</tt:PanTilt><tt:Zoom>${motor.zoom === 0 ? 'IDLE' : 'MOVING'}</tt:Zoom></tt:MoveStatus></tptz:PTZStatus></tptz:GetStatusResponse>`;
    },
  };
}
const held_step_ms = 20;

function space({ name, uri, x = [-1, 1], y = [-1, 1] }: SimSpace): string {
  const range = (axis: string, [min, max]: readonly [number, number]): string =>
    `<tt:${axis}><tt:Min>${min}</tt:Min><tt:Max>${max}</tt:Max></tt:${axis}>`;
  const tilt = name.includes('PanTilt') ? range('YRange', y) : '';
  return `<tt:${name}><tt:URI>http://www.onvif.org/ver10/tptz/${uri}</tt:URI>${range('XRange', x)}${tilt}</tt:${name}>`;
}

function vectorIn(body: string): Partial<SimMotor['way']> {
  const [, x, y] = /<PanTilt [^>]*x="([^"]*)" y="([^"]*)"/u.exec(body) ?? [];
  const [, zoom] = /<Zoom [^>]*x="([^"]*)"/u.exec(body) ?? [];
  return {
    ...(x === undefined ? {} : { x: Number(x), y: Number(y) }),
    ...(zoom === undefined ? {} : { zoom: Number(zoom) }),
  };
}

function sourcesOf({ sources, ptz }: SimSettings): readonly SimSource[] {
  return sources ?? [{ token: 'VS0', ptz }];
}

/** Of several sources, profiles are called by theirs. */
function sourceOfProfile(profile: string): string {
  return /^(.*)-(?:main|sub)$/u.exec(profile)?.[1] ?? '';
}

interface SimProfile {
  readonly token: string;
  readonly source: SimSource;
  /** Of the video source. */
  readonly configuration: string;
  readonly size: typeof main;
}

function profilesOf(settings: SimSettings): readonly SimProfile[] {
  const sources = sourcesOf(settings);
  return sources.flatMap((source) =>
    Object.entries({ main, sub }).map(([stream, size]) => ({
      token: sources.length > 1 ? `${source.token}-${stream}` : stream,
      source,
      configuration: sources.length > 1 ? `VSC-${source.token}` : 'VSC',
      size,
    })),
  );
}

function profiles(settings: SimSettings): string {
  const one = ({ token, source, configuration, size: { width, height } }: SimProfile): string => {
    const encoder =
      source.absent === 'no_encoder'
        ? ''
        : `<tt:VideoEncoderConfiguration token="VE"><tt:Encoding>H264</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution></tt:VideoEncoderConfiguration>`;
    const ptz = source.ptz
      ? '<tt:PTZConfiguration token="PTZ"><tt:NodeToken>N</tt:NodeToken></tt:PTZConfiguration>'
      : '';
    return (
      `<trt:Profiles token="${token}" fixed="true"><tt:Name>${token}</tt:Name><tt:VideoSourceConfiguration token="${configuration}"><tt:SourceToken>${source.token}</tt:SourceToken></tt:VideoSourceConfiguration>` +
      `${encoder}<tt:VideoAnalyticsConfiguration token="VA-${source.token}"/>${ptz}</trt:Profiles>`
    );
  };
  return `<trt:GetProfilesResponse>${profilesOf(settings).map(one).join('')}</trt:GetProfilesResponse>`;
}

function profiles2(settings: SimSettings): string {
  const one = ({ token, source, configuration, size: { width, height } }: SimProfile): string =>
    `<tr2:Profiles token="${token}"><tr2:Name>${token}</tr2:Name><tr2:Configurations><tr2:VideoSource token="${configuration}"><tt:SourceToken>${source.token}</tt:SourceToken></tr2:VideoSource>` +
    `<tr2:VideoEncoder token="VE"><tt:Encoding>${width === main.width ? 'H265' : 'H264'}</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution></tr2:VideoEncoder>` +
    `${source.ptz ? '<tr2:PTZ token="PTZ"><tt:NodeToken>N</tt:NodeToken></tr2:PTZ>' : ''}</tr2:Configurations></tr2:Profiles>`;
  return `<tr2:GetProfilesResponse>${profilesOf(settings).map(one).join('')}</tr2:GetProfilesResponse>`;
}

function dateAndTime(at: Date): string {
  return (
    `<tds:GetSystemDateAndTimeResponse><tds:SystemDateAndTime><tt:DateTimeType>Manual</tt:DateTimeType><tt:UTCDateTime>` +
    `<tt:Time><tt:Hour>${at.getUTCHours()}</tt:Hour><tt:Minute>${at.getUTCMinutes()}</tt:Minute><tt:Second>${at.getUTCSeconds()}</tt:Second></tt:Time>` +
    `<tt:Date><tt:Year>${at.getUTCFullYear()}</tt:Year><tt:Month>${at.getUTCMonth() + 1}</tt:Month><tt:Day>${at.getUTCDate()}</tt:Day></tt:Date>` +
    '</tt:UTCDateTime></tds:SystemDateAndTime></tds:GetSystemDateAndTimeResponse>'
  );
}
