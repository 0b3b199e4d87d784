/** What the simulated ONVIF camera answers: device, media, Media2 and PTZ, as ONVIF Core, Media and PTZ specify. */
import type { ServerResponse } from 'node:http';
import { escapeXml } from '../soap/xml.ts';
import type { SimMotor } from './motor.ts';
import type { SimRequest, SimSettings } from './settings.ts';

/** The operation's response element, or a fault; undefined where the operation sends its answer itself or none. */
export type Soap = (
  request: SimRequest,
  response: ServerResponse,
) => Answer | undefined | Promise<Answer | undefined>;
type Answer = string | { readonly fault: string; readonly reason?: string };

interface Served {
  readonly base: string;
  readonly settings: SimSettings;
  readonly motor: SimMotor;
}

export function envelope(body: string, prefix: string): string {
  const p = prefix;
  const spaces = [
    `xmlns:${p}="http://www.w3.org/2003/05/soap-envelope"`,
    'xmlns:tt="http://www.onvif.org/ver10/schema"',
    'xmlns:tds="http://www.onvif.org/ver10/device/wsdl"',
    'xmlns:trt="http://www.onvif.org/ver10/media/wsdl"',
    'xmlns:tr2="http://www.onvif.org/ver20/media/wsdl"',
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

function ptzOperations({ settings, motor }: Served): Readonly<Record<string, Soap>> {
  return {
    GetNodes: () => {
      const zoom = settings.zoom
        ? '<tt:ContinuousZoomVelocitySpace><tt:URI>z</tt:URI></tt:ContinuousZoomVelocitySpace>'
        : '';
      const move =
        '<tt:ContinuousPanTiltVelocitySpace><tt:URI>p</tt:URI></tt:ContinuousPanTiltVelocitySpace>';
      return `<tptz:GetNodesResponse><tptz:PTZNode token="N"><tt:SupportedPTZSpaces>${move}${zoom}</tt:SupportedPTZSpaces></tptz:PTZNode></tptz:GetNodesResponse>`;
    },
    GetPresets: () =>
      `<tptz:GetPresetsResponse>${settings.presets
        .map(
          ({ token, name }) =>
            `<tptz:Preset token="${escapeXml(token)}"><tt:Name>${escapeXml(name)}</tt:Name></tptz:Preset>`,
        )
        .join('')}</tptz:GetPresetsResponse>`,
    GotoPreset: ({ body }) => {
      const written = /PresetToken>([^<]*)</u.exec(body)?.[1];
      motor.goTo(
        written,
        settings.presets.findIndex(({ token }) => escapeXml(token) === written),
      );
      return '<tptz:GotoPresetResponse/>';
    },
    ContinuousMove: ({ body }) => {
      const [, zoom] = /<(?:\w+:)?Zoom [^>]*x="([^"]*)"/u.exec(body) ?? [];
      const [, x, y] = /x="([^"]*)" y="([^"]*)"/u.exec(body) ?? [];
      if (zoom === undefined) motor.move(Number(x), Number(y));
      else motor.zoom = Number(zoom);
      return '<tptz:ContinuousMoveResponse/>';
    },
    Stop: () => {
      motor.stop();
      return '<tptz:StopResponse/>';
    },
    GetStatus: () => {
      const { pan_deg, tilt_deg } = motor.position;
      const at = `<tt:Position><tt:PanTilt x="${pan_deg / 180}" y="${tilt_deg / 90}"/></tt:Position>`;
      const state = motor.isMoving ? 'MOVING' : 'IDLE';
      return `<tptz:GetStatusResponse><tptz:PTZStatus>${at}<tt:MoveStatus><tt:PanTilt>${state}</tt:PanTilt><tt:Zoom>${motor.zoom === 0 ? 'IDLE' : 'MOVING'}</tt:Zoom></tt:MoveStatus></tptz:PTZStatus></tptz:GetStatusResponse>`;
    },
  };
}

function profiles({ ptz }: SimSettings): string {
  const one = (token: string, encoding: string, { width, height }: typeof main): string =>
    `<trt:Profiles token="${token}" fixed="true"><tt:Name>${token}</tt:Name><tt:VideoSourceConfiguration token="VSC"><tt:SourceToken>VS0</tt:SourceToken></tt:VideoSourceConfiguration>` +
    `<tt:VideoEncoderConfiguration token="VE"><tt:Encoding>${encoding}</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution></tt:VideoEncoderConfiguration>` +
    `${ptz ? '<tt:PTZConfiguration token="PTZ"><tt:NodeToken>N</tt:NodeToken></tt:PTZConfiguration>' : ''}</trt:Profiles>`;
  return `<trt:GetProfilesResponse>${one('main', 'H264', main)}${one('sub', 'H264', sub)}</trt:GetProfilesResponse>`;
}

function profiles2({ ptz }: SimSettings): string {
  const one = (token: string, encoding: string, { width, height }: typeof main): string =>
    `<tr2:Profiles token="${token}"><tr2:Name>${token}</tr2:Name><tr2:Configurations><tr2:VideoEncoder token="VE"><tt:Encoding>${encoding}</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution></tr2:VideoEncoder>` +
    `${ptz ? '<tr2:PTZ token="PTZ"/>' : ''}</tr2:Configurations></tr2:Profiles>`;
  return `<tr2:GetProfilesResponse>${one('main', 'H265', main)}${one('sub', 'H264', sub)}</tr2:GetProfilesResponse>`;
}

function dateAndTime(at: Date): string {
  return (
    `<tds:GetSystemDateAndTimeResponse><tds:SystemDateAndTime><tt:DateTimeType>Manual</tt:DateTimeType><tt:UTCDateTime>` +
    `<tt:Time><tt:Hour>${at.getUTCHours()}</tt:Hour><tt:Minute>${at.getUTCMinutes()}</tt:Minute><tt:Second>${at.getUTCSeconds()}</tt:Second></tt:Time>` +
    `<tt:Date><tt:Year>${at.getUTCFullYear()}</tt:Year><tt:Month>${at.getUTCMonth() + 1}</tt:Month><tt:Day>${at.getUTCDate()}</tt:Day></tt:Date>` +
    '</tt:UTCDateTime></tds:SystemDateAndTime></tds:GetSystemDateAndTimeResponse>'
  );
}
