/**
 * Replies of named ONVIF cameras. The shape, the versions and what is special are as published at `source`; names, addresses,
 * serial numbers and tokens of people are ours, and elements that nothing reads are left out.
 */

export interface OnvifModel {
  readonly model: string;
  readonly firmware: string;
  /** Where its replies, or what is special about them, were published. */
  readonly source: string;
  readonly special: string;
  /** Content of the reply by operation; others are answered with ActionNotSupported. */
  readonly replies: Readonly<Record<string, string>>;
  /** Notifications, and what each of them means; a topic that means nothing is an empty list. */
  readonly notes: readonly (readonly [xml: string, meaning: readonly string[]])[];
  readonly expected: {
    readonly asset_keys: readonly string[];
    readonly stream?: string;
    readonly canMove?: boolean;
    readonly hasPicture?: boolean;
    readonly presets?: readonly string[];
  };
}

const host = '10.41.2.11';

function information(manufacturer: string, model: string, firmware: string, serial: string): string {
  return `<tds:Manufacturer>${manufacturer}</tds:Manufacturer><tds:Model>${model}</tds:Model><tds:FirmwareVersion>${firmware}</tds:FirmwareVersion><tds:SerialNumber>${serial}</tds:SerialNumber>`;
}

function network(mac: string, address = host): string {
  return `<tds:NetworkInterfaces token="eth0"><tt:Info><tt:Name>eth0</tt:Name><tt:HwAddress>${mac}</tt:HwAddress></tt:Info><tt:IPv4><tt:Config><tt:FromDHCP><tt:Address>${address}</tt:Address><tt:PrefixLength>24</tt:PrefixLength></tt:FromDHCP></tt:Config></tt:IPv4></tds:NetworkInterfaces>`;
}

const paths = {
  device: 'ver10/device',
  media: 'ver10/media',
  events: 'ver10/events',
  ptz: 'ver20/ptz',
} as const;

function services(address: (name: string) => string, ...names: readonly (keyof typeof paths)[]): string {
  return names
    .map(
      (name) =>
        `<tds:Service><tds:Namespace>http://www.onvif.org/${paths[name]}/wsdl</tds:Namespace><tds:XAddr>${address(name)}</tds:XAddr></tds:Service>`,
    )
    .join('');
}

/** Token, encoding, width and height, and whether it moves. */
function profiles(...rows: readonly (readonly [string, string, number, number, boolean?])[]): string {
  return rows
    .map(
      ([token, encoding, width, height, moves]) =>
        `<trt:Profiles token="${token}" fixed="true"><tt:Name>p</tt:Name><tt:VideoEncoderConfiguration token="${token}"><tt:Encoding>${encoding}</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution></tt:VideoEncoderConfiguration>${moves ? '<tt:PTZConfiguration token="c"/>' : ''}</trt:Profiles>`,
    )
    .join('');
}

function uri(address: string): string {
  return `<trt:MediaUri><tt:Uri>${address.replaceAll('&', '&amp;')}</tt:Uri><tt:InvalidAfterConnect>false</tt:InvalidAfterConnect></trt:MediaUri>`;
}

function note(topic: string, data: Readonly<Record<string, string>>, source = ''): string {
  const items = Object.entries(data).map(
    ([name, value]) => `<tt:SimpleItem Name="${name}" Value="${value}"/>`,
  );
  return `<wsnt:NotificationMessage><wsnt:Topic Dialect="http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet">${topic}</wsnt:Topic><wsnt:Message><tt:Message UtcTime="1970-01-01T00:01:19Z" PropertyOperation="Changed"><tt:Source><tt:SimpleItem Name="Source" Value="${source}"/></tt:Source><tt:Data>${items.join('')}</tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage>`;
}

const captures = 'github.com/EthanFlower1/onvif-go camera-data-batch-20260113-142511';
const at = (port: number) => (name: string) => `http://${host}:${port}/onvif/${name}_service`;
const rtsp = `rtsp://${host}:554`;
/** Of a camera whose services were not published. */
const bare = { GetServices: services(at(80), 'device', 'events') };

export const onvif_models: readonly OnvifModel[] = [
  {
    model: 'AXIS P3818-PVE',
    firmware: '11.9.60',
    source: captures,
    special:
      'one address for all services; its serial number is the MAC address; tampering and shocks without a state',
    replies: {
      GetDeviceInformation: information('AXIS', 'P3818-PVE', '11.9.60', 'B8A44F0000A1'),
      GetNetworkInterfaces: network('B8:A4:4F:00:00:A1'),
      GetServices: services(() => `http://${host}/onvif/services`, 'events', 'device', 'media'),
      GetProfiles: profiles(['profile_1_h264', 'H264', 1920, 960], ['profile_1_jpeg', 'JPEG', 5120, 2560]),
      GetStreamUri: uri(`rtsp://${host}/onvif-media/media.amp?profile=profile_1_h264&sessiontimeout=60`),
      GetSnapshotUri: uri(`http://${host}/onvif-cgi/jpg/image.cgi?resolution=1920x960&compression=30`),
    },
    notes: [
      [note('tns1:VideoSource/tnsaxis:Tampering', { tampering: '1' }, '1'), ['tamper pulse']],
      [note('tns1:Device/tnsaxis:Tampering/ShockDetected', {}, '1'), ['tamper pulse']],
      [note('tns1:VideoSource/GlobalSceneChange/ImagingService', { State: '1' }), ['tamper active']],
      [note('tns1:Device/tnsaxis:Sensor/PIR', { state: '1' }), ['motion active']],
      [note('tns1:VideoSource/tnsaxis:DayNightVision', { day: '1' }), []],
      [note('tns1:Device/tnsaxis:Status/SystemReady', { ready: '1' }), []],
      [note('tns1:Device/tnsaxis:IO/Port', { state: '1' }), ['digital_input active']],
    ],
    expected: {
      asset_keys: ['onvif:axis:p3818-pve:b8a44f0000a1', 'onvif:mac:b8a44f0000a1'],
      stream: `/onvif-media/media.amp?profile=profile_1_h264&sessiontimeout=60`,
      hasPicture: true,
    },
  },
  {
    model: 'AXIS with VMD 3, VMD 4, Object Analytics and Loitering Guard',
    firmware: '5.51 to 11',
    source: 'github.com/Kane610/axis tests; names of the applications as in the list of events of the camera',
    special: 'analytics are applications with numbered profiles and scenarios; active is 1 or 0',
    replies: {
      ...bare,
      GetDeviceInformation: information('AXIS', 'M1065-L', '9.80.3', 'ACCC8E0000A2'),
    },
    notes: [
      [note('tns1:RuleEngine/tnsaxis:VMD3/vmd3_video_1', { active: '1' }), ['motion active']],
      [note('tnsaxis:CameraApplicationPlatform/VMD/Camera1ProfileANY', { active: '0' }), ['motion idle']],
      [
        note('tnsaxis:CameraApplicationPlatform/ObjectAnalytics/Device1ScenarioANY', {
          active: '1',
          classTypes: '',
        }),
        ['motion active'],
      ],
      [
        note('tnsaxis:CameraApplicationPlatform/LoiteringGuard/Camera1Profile1', { active: '1' }),
        ['motion active'],
      ],
      [note('tns1:RuleEngine/LoiteringDetector/ObjectIsLoitering', { State: 'true' }), ['motion active']],
      [note('tnsaxis:CameraApplicationPlatform/VMD/xinternal_data', { svgframe: '' }), []],
    ],
    expected: { asset_keys: ['onvif:axis:m1065-l:accc8e0000a2'] },
  },
  {
    model: 'Bosch FLEXIDOME IP starlight 8000i',
    firmware: '7.70.0126',
    source: `${captures}; FLEXIDOME indoor 5100i IR 8.71.0066: github.com/0x524a/onvif-go testdata/captures`,
    special:
      'announces no pull points and has them; rules of its analytics by their names; a clock without local time',
    replies: {
      GetDeviceInformation: information(
        'Bosch',
        'FLEXIDOME IP starlight 8000i',
        '7.70.0126',
        '044500000000000001',
      ),
      GetNetworkInterfaces: network('00:07:5F:00:00:B1'),
      GetServices: services(at(80), 'device', 'media', 'events'),
      GetProfiles: profiles(['0', 'H264', 1536, 864], ['2', 'JPEG', 1536, 864]),
      GetStreamUri: uri(`rtsp://${host}/rtsp_tunnel?p=0&h26x=4&vcd=2`),
      GetSnapshotUri: uri(`http://${host}/snap.jpg?JpegCam=1`),
    },
    notes: [
      [note('tns1:VideoSource/MotionAlarm', { State: 'true' }, '1'), ['motion active']],
      [note('tns1:IVA/ObjectInField/Detect_any_object', { State: 'true' }, '1'), ['motion active']],
      [note('tns1:RuleEngine/FieldDetector/ObjectsInside', { State: 'false' }, '1'), ['motion idle']],
      [
        note('tns1:VideoSource/GlobalSceneChange/AnalyticsService', { State: 'true' }, '1'),
        ['tamper active'],
      ],
      [
        note('tns1:VideoSource/ImageTooDark/AnalyticsService', { State: 'true' }, '1'),
        ['picture_fault active'],
      ],
      [note('tns1:Monitoring/Profile/ActiveConnections', { State: 'true' }, '1'), []],
    ],
    expected: {
      asset_keys: ['onvif:bosch:flexidome-ip-starlight-8000i:044500000000000001', 'onvif:mac:00075f0000b1'],
      stream: '/rtsp_tunnel?p=0&h26x=4&vcd=2',
      hasPicture: true,
    },
  },
  {
    model: 'Bosch AUTODOME IP starlight 5000i',
    firmware: '7.80.0128',
    source: captures,
    special: 'presets with their positions',
    replies: {
      GetDeviceInformation: information(
        'Bosch',
        'AUTODOME IP starlight 5000i',
        '7.80.0128',
        '044500000000000002',
      ),
      GetNetworkInterfaces: network('00:07:5F:00:00:B2'),
      GetServices: services(at(80), 'device', 'media', 'events', 'ptz'),
      GetProfiles: profiles(['0', 'H264', 1536, 864, true], ['2', 'JPEG', 1536, 864, true]),
      GetStreamUri: uri(`rtsp://${host}/rtsp_tunnel?p=0&h26x=4&vcd=2`),
      GetPresets:
        '<tptz:Preset token="1"><tt:Name>Gate</tt:Name><tt:PTZPosition><tt:PanTilt x="-0.311" y="0.822"/><tt:Zoom x="0.179"/></tt:PTZPosition></tptz:Preset><tptz:Preset token="2"><tt:Name>Road</tt:Name></tptz:Preset>',
    },
    notes: [],
    expected: {
      asset_keys: ['onvif:bosch:autodome-ip-starlight-5000i:044500000000000002', 'onvif:mac:00075f0000b2'],
      stream: '/rtsp_tunnel?p=0&h26x=4&vcd=2',
      canMove: true,
      presets: ['1 Gate', '2 Road'],
    },
  },
  {
    model: 'Reolink E1 Zoom and TrackMix WiFi',
    firmware: 'v3.1.0.2649_23083101, v3.0.0.5428_2509171974',
    source: captures,
    special:
      'their serial number is their IP address without its dots; services on port 8000, pictures on port 80',
    replies: {
      GetDeviceInformation: information('REOLINK', 'E1 Zoom', 'v3.1.0.2649_23083101', '1041211'),
      GetNetworkInterfaces: network('ec:71:db:00:00:c1'),
      GetServices: services(at(8000), 'device', 'media', 'events', 'ptz'),
      GetProfiles: profiles(['000', 'H264', 2048, 1536, true], ['001', 'H264', 640, 480, true]),
      GetStreamUri: uri(`${rtsp}/h264Preview_01_sub`),
      GetSnapshotUri: uri(`http://${host}:80/cgi-bin/api.cgi?cmd=onvifSnapPic&channel=0`),
      GetPresets: '',
    },
    notes: [
      [note('tns1:RuleEngine/CellMotionDetector/Motion', { IsMotion: 'true' }, '000'), ['motion active']],
      [
        note('tns1:VideoSource/ImageTooDark/ImagingService', { State: 'true' }, '000'),
        ['picture_fault active'],
      ],
      [note('tns1:Media/ProfileChanged', { Token: '000' }), []],
    ],
    expected: {
      asset_keys: ['onvif:mac:ec71db0000c1', 'onvif:reolink:e1-zoom:1041211'],
      stream: '/h264Preview_01_sub',
      canMove: true,
      hasPicture: true,
      presets: [],
    },
  },
  {
    model: 'Reolink RLC-1224A',
    firmware: 'of 2025',
    source: 'github.com/klaushofrichter/cams',
    special: 'a serial number of its own after each start; rules of its own names, one for bicycles',
    replies: {
      ...bare,
      GetDeviceInformation: information('REOLINK', 'RLC-1224A', 'v3.1.0', '6911d3a0'),
      GetNetworkInterfaces: network('ec:71:db:00:00:c2'),
    },
    notes: [
      [
        note('tns1:RuleEngine/MyRuleDetector/Non_Motor_VehicleDetect', { State: 'true' }, '000'),
        ['motion active'],
      ],
      [note('tns1:RuleEngine/MyRuleDetector/Visitor', { State: 'true' }, '000'), ['doorbell active']],
      [note('tns1:RuleEngine/MyRuleDetector/Package', { State: 'false' }, '000'), ['motion idle']],
    ],
    expected: { asset_keys: ['onvif:reolink:rlc-1224a:6911d3a0', 'onvif:mac:ec71db0000c2'] },
  },
  {
    model: 'Tapo C200 and C250',
    firmware: '1.3.6',
    source:
      'github.com/edgexfoundry/device-onvif-camera/issues/2 (serial number); home-assistant/core#127991 (events), #91661 (ports)',
    special:
      'all cameras of the model have one serial number; services on port 2020, events as rules with names of their own',
    replies: {
      GetDeviceInformation: information('tp-link', 'C200', '1.3.6', 'g7000001'),
      GetNetworkInterfaces: network('3C-52-A1-00-00-D1'),
      GetServices: services(() => `http://${host}:2020/onvif/service`, 'device', 'media', 'events'),
      GetProfiles: profiles(['profile_1', 'H264', 1920, 1080], ['profile_2', 'H264', 640, 360]),
      GetStreamUri: uri(`${rtsp}/stream2`),
    },
    notes: [
      [
        note('tns1:RuleEngine/LineCrossDetector/LineCross', { IsLineCross: 'true' }, 'vsconf'),
        ['motion active'],
      ],
      [
        note('tns1:RuleEngine/IntrusionDetector/Intrusion', { IsIntrusion: 'true' }, 'vsconf'),
        ['motion active'],
      ],
      [
        note('tns1:RuleEngine/TPSmartEventDetector/TPSmartEvent', { IsPet: 'true' }, 'vsconf'),
        ['motion active'],
      ],
      [note('tns1:RuleEngine/PeopleDetector/People', { IsPeople: 'false' }, 'vsconf'), ['motion idle']],
      [note('tns1:RuleEngine/TamperDetector/Tamper', { IsTamper: 'true' }, 'vsconf'), ['tamper active']],
    ],
    expected: { asset_keys: ['onvif:tp-link:c200:g7000001', 'onvif:mac:3c52a10000d1'], stream: '/stream2' },
  },
  {
    model: 'Tuya 1234, and EYEPLUS_DEV',
    firmware: '5.6.1.1127',
    source: 'github.com/home-assistant/frontend/issues/17345; home-assistant/core#63399 and #59218',
    special: 'published default serial numbers; EYEPLUS reports six numbers in place of a hardware address',
    replies: {
      ...bare,
      GetDeviceInformation: information('Tuya', '1234', '1.0', '0123456789'),
      GetNetworkInterfaces:
        network('41a0bc:41a0bd:41a0be:41a0bf:41a0c0:41a0c1') + network('d8:1f:12:00:00:e1'),
    },
    notes: [],
    expected: { asset_keys: ['onvif:mac:d81f120000e1'] },
  },
  {
    model: 'Hikvision DS-2CD2385FWD-I and SD-HD1',
    firmware: 'V5.6.5 build 200316',
    source: 'github.com/home-assistant/core/issues/38033 and 36111',
    special: 'counts objects, which is no motion; a crossed line names the object only',
    replies: {
      ...bare,
      GetDeviceInformation: information(
        'HIKVISION',
        'DS-2CD2385FWD-I',
        'V5.6.5 build 200316',
        'DS-2CD2385FWD-I20190101AAWRD00000001',
      ),
      GetNetworkInterfaces: network('80:91:33:00:00:f1'),
    },
    notes: [
      [note('tns1:RuleEngine/CountAggregation/Counter', { Count: '3' }, 'VideoSourceToken'), []],
      [note('tns1:RuleEngine/LineDetector/Crossed', { ObjectId: '1' }, 'VideoSourceToken'), ['motion pulse']],
      [
        note('tns1:RuleEngine/FieldDetector/ObjectsInside', { IsInside: 'true' }, 'VideoSourceToken'),
        ['motion active'],
      ],
    ],
    expected: {
      asset_keys: [
        'onvif:hikvision:ds-2cd2385fwd-i:ds-2cd2385fwd-i20190101aawrd00000001',
        'onvif:mac:8091330000f1',
      ],
    },
  },
  {
    model: 'Dahua (Imou Ranger Dual), Uniview IPC2124, Samsung PNF-9010R',
    firmware: 'of 2022 to 2025',
    source: 'github.com/home-assistant/core/issues/140575, 175055 and 66493',
    special: 'prefixes within a topic; Uniview never ends HumanShapeDetect; Samsung has a topic of its own',
    replies: {
      ...bare,
      GetDeviceInformation: information('Dahua', 'Ranger Dual', '2.840', '8L0000000000001'),
    },
    notes: [
      [
        note('tns1:VideoSource/tns1:Device/Trigger/DigitalInput', { LogicalState: 'true' }, '00000'),
        ['digital_input active'],
      ],
      [note('tns1:UserAlarm/tns1:IVA/HumanShapeDetect', { State: 'true' }, 'VSC0'), ['motion active']],
      [note('tns1:VideoAnalytics/tnssamsung:MotionDetection', { State: '1' }, '0'), ['motion active']],
      [note('tns1:RuleEngine/CellMotionDetector/Motion//.', { IsMotion: 'true' }, '0'), ['motion active']],
    ],
    expected: { asset_keys: ['onvif:dahua:ranger-dual:8l0000000000001'] },
  },
];
