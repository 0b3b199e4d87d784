/**
 * Replies of named Reolink models. The shape, the versions and what is special are as published at `source`; names, addresses
 * and identifiers are ours, and fields that nothing reads are left out.
 */

export interface ReolinkModel {
  readonly model: string;
  readonly firmware: string;
  /** Where its replies, or what is special about them, were published. */
  readonly source: string;
  readonly special: string;
  /** Values by command, or by command and channel; a number is an error code. Other commands are answered with -9. */
  readonly replies: Readonly<Record<string, unknown>>;
  readonly expected: {
    readonly asset_keys: readonly string[];
    readonly isRecorder?: boolean;
    /** Name and model of each channel in use. */
    readonly channels?: readonly (readonly [string, string | null])[];
    /** Abilities of the first channel that are there, in alphabetical order. */
    readonly abilities: readonly string[];
    readonly presets?: readonly string[];
    readonly motion: boolean | null;
    readonly ai: readonly string[] | null;
    readonly fitted: readonly string[];
    readonly stream: string;
  };
}

const yes = { permit: 6, ver: 1 };
const no = { permit: 0, ver: 0 };
const network = (mac: string) => ({
  GetLocalLink: { LocalLink: { activeLink: 'LAN', mac, type: 'DHCP' } },
  GetNetPort: { NetPort: { httpsEnable: 1, mediaPort: 9_000, rtspEnable: 1, rtspPort: 554 } },
});
const about = (model: string, firmVer: string, more: object = {}) => ({
  GetDevInfo: {
    DevInfo: { channelNum: 1, firmVer, model, name: 'Gate', serial: '00000000000000', type: 'IPC', ...more },
  },
});
const abilities = (...abilityChn: readonly object[]) => ({
  GetAbility: { Ability: { abilityChn, reboot: { permit: 1, ver: 1 }, scheduleVersion: yes } },
});
const detector = (alarm_state: number, support = 1) => ({ alarm_state, support });
const camera = { alarmMd: yes, snap: yes, supportMd: yes };
const fixed = { ...camera, ptzCtrl: no, ptzPreset: no, ptzType: no };
const motorised = (ver: number) => ({
  ...camera,
  ptzCtrl: { permit: 7, ver: 2 },
  ptzPreset: { permit: 7, ver: 1 },
  ptzType: { permit: 0, ver },
});

export const reolink_models: readonly ReolinkModel[] = [
  {
    model: 'RLC-510A',
    firmware: 'v3.0.0.177_21012102',
    source: 'github.com/fwestenberg/reolink_dev/issues/342',
    special: 'people_state and vehicle_state as plain numbers, no GetEvents; a serial number that all share',
    replies: {
      ...about('RLC-510A', 'v3.0.0.177_21012102', { serial: '00000000065536' }),
      ...network('EC:71:DB:00:05:10'),
      ...abilities(fixed),
      GetMdState: { state: 1 },
      GetAiState: { channel: 0, people_state: 1, vehicle_state: 0 },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db000510'],
      abilities: ['canSetMotion', 'hasPictures'],
      motion: true,
      ai: ['people'],
      fitted: ['people', 'vehicle'],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'RLC-822A',
    firmware: 'v3.1.0.956_22041507',
    source: 'github.com/xannor/py_reolinkrestapi tests/test_issues.py int5 (xannor/ha_reolink_rest#5)',
    special:
      'a motorised lens without pan, tilt and presets (ptzType 1); no siren although it has a microphone',
    replies: {
      ...about('RLC-822A', 'v3.1.0.956_22041507', { exactType: 'IPC', serial: 'XXXXXXXXXXXXXXXXXXXX' }),
      ...network('EC:71:DB:00:08:22'),
      ...abilities({
        ...motorised(1),
        ptzPreset: no,
        alarmAudio: no,
        floodLight: no,
        supportFLswitch: no,
      }),
      GetMdState: { state: 0 },
      GetAiState: {
        channel: 0,
        dog_cat: detector(0),
        face: detector(0, 0),
        people: detector(0),
        vehicle: detector(1),
      },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db000822'],
      abilities: ['canSetMotion', 'canZoom', 'hasPictures'],
      motion: false,
      ai: ['vehicle'],
      fitted: ['people', 'vehicle', 'dog_cat'],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'RLC-823A',
    firmware: 'v3.1.0.956_22041511_v1.0.0.30',
    source: 'github.com/xannor/py_reolinkrestapi tests/test_issues.py int9 (xannor/ha_reolink_rest#9)',
    special:
      'its siren is alarmAudio of the channel, its light supportFLswitch with floodLight 0; a serial number of zeros',
    replies: {
      ...about('RLC-823A', 'v3.1.0.956_22041511_v1.0.0.30', { exactType: 'IPC' }),
      ...network('EC:71:DB:00:08:23'),
      GetP2p: { P2p: { enable: 1, uid: '95270001AB823A00' } },
      ...abilities({ ...motorised(2), alarmAudio: yes, floodLight: no, supportFLswitch: yes }),
      GetMdState: { state: 1 },
      GetAiState: { channel: 0, dog_cat: detector(1), face: detector(0, 0), people: detector(0) },
      GetPtzPreset: {
        PtzPreset: [
          { channel: 0, enable: 1, id: 1, name: 'Road' },
          { channel: 0, enable: 0, id: 2, name: 'pos2' },
        ],
      },
    },
    expected: {
      asset_keys: ['vendorcam:95270001AB823A00', 'vendorcam:ec71db000823'],
      abilities: [
        'canMove',
        'canSetMotion',
        'canZoom',
        'hasLight',
        'hasPictures',
        'hasPresets',
        'hasSiren',
        'takesSpeed',
      ],
      presets: ['1 Road'],
      motion: true,
      ai: ['dog_cat'],
      fitted: ['people', 'dog_cat'],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'RLC-411WS',
    firmware: 'v2.0.0.1389_18081408',
    source: 'github.com/ReolinkCameraAPI/reolinkapipy examples/response/GetDevInfo.json',
    special: 'firmware of 2018: no type of motor, no UID, no detectors of kinds, no address of its stream',
    replies: {
      ...about('RLC-411WS', 'v2.0.0.1389_18081408'),
      ...network('EC:71:DB:00:41:15'),
      GetAbility: { Ability: { abilityChn: [{ alarmMd: yes }], reboot: { permit: 1, ver: 1 } } },
      GetMdState: { state: 1 },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db004115'],
      abilities: ['canSetMotion', 'hasPictures'],
      motion: true,
      ai: null,
      fitted: [],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'RLC-423',
    firmware: '1120_16070108_v1.0.0.30',
    source: 'github.com/starkillerOG/reolink_aio/issues/110',
    special:
      'firmware of 2016: what it does not know is answered as command Unknown; it moves without a type of motor',
    replies: {
      ...about('RLC-423', '1120_16070108_v1.0.0.30'),
      ...network('EC:71:DB:00:04:23'),
      GetAbility: {
        Ability: {
          abilityChn: [{ alarmMd: yes, ptzCtrl: { permit: 7, ver: 1 }, ptzPreset: yes }],
          reboot: yes,
        },
      },
      GetMdState: { state: 0 },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db000423'],
      abilities: ['canMove', 'canSetMotion', 'canZoom', 'hasPictures', 'hasPresets', 'takesSpeed'],
      motion: false,
      ai: null,
      fitted: [],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'RLC-811A',
    firmware: 'v3.0.0.716_21112408',
    source: 'github.com/aendue/ioBroker.reolink/issues/49',
    special: 'it lists a detector of faces that it does not have (support 0)',
    replies: {
      ...about('RLC-811A', 'v3.0.0.716_21112408'),
      ...network('EC:71:DB:00:08:11'),
      ...abilities({ ...motorised(1), ptzPreset: no }),
      GetMdState: { state: 1 },
      GetAiState: { channel: 0, face: detector(0, 0), people: detector(1), vehicle: detector(0) },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db000811'],
      abilities: ['canSetMotion', 'canZoom', 'hasPictures'],
      motion: true,
      ai: ['people'],
      fitted: ['people', 'vehicle'],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'E1 Zoom',
    firmware: 'v3.1.0.2649_23083101',
    source: 'github.com/starkillerOG/reolink_aio/issues/46',
    special:
      'a single camera that lists its one channel; presets from 0 on; the path of its stream without h264',
    replies: {
      ...about('E1 Zoom', 'v3.1.0.2649_23083101', { exactType: 'WIFI_SOLO_IPC', serial: '215222925130001' }),
      ...network('EC:71:DB:00:0E:12'),
      GetP2p: { P2p: { enable: 1, uid: '95270001AB0E1200' } },
      ...abilities({ ...motorised(5), alarmAudio: yes }),
      GetChannelstatus: { count: 1, status: [{ channel: 0, name: 'Gate', online: 1, typeInfo: 'E1 Zoom' }] },
      GetEvents: { channel: 0, ai: { people: detector(0), dog_cat: detector(0) }, md: detector(1) },
      GetPtzPreset: { PtzPreset: [{ channel: 0, enable: 1, id: 0, name: 'Door' }] },
      GetRtspUrl: {
        rtspUrl: {
          channel: 0,
          mainStream: 'rtsp://192.0.2.159:554/Preview_01_main',
          subStream: 'rtsp://192.0.2.159:554/Preview_01_sub',
        },
      },
    },
    expected: {
      asset_keys: ['vendorcam:95270001AB0E1200', 'vendorcam:ec71db000e12'],
      abilities: ['canMove', 'canSetMotion', 'canZoom', 'hasPictures', 'hasPresets', 'hasSiren'],
      presets: ['0 Door'],
      motion: true,
      ai: [],
      fitted: ['people', 'dog_cat'],
      stream: '/Preview_01_sub',
    },
  },
  {
    model: 'Reolink Duo PoE',
    firmware: 'v3.0.0.1388_22100600',
    source:
      'github.com/home-assistant/core/issues/90904; of its UID: home-assistant/core#135035; of its channels: starkillerOG/reolink_aio#60',
    special:
      'a camera (IPC) with two channels and without GetChannelstatus; its lenses are called by numbers',
    replies: {
      ...about('Reolink Duo PoE', 'v3.0.0.1388_22100600', { channelNum: 2 }),
      ...network('EC:71:DB:00:0D:01'),
      ...abilities(
        { ...fixed, floodLight: yes, alarmAudio: yes },
        { ...fixed, floodLight: yes, alarmAudio: yes },
      ),
      'GetOsd 0': { Osd: { channel: 0, osdChannel: { enable: 1, name: '1' } } },
      'GetOsd 1': { Osd: { channel: 1, osdChannel: { enable: 1, name: '2' } } },
      GetMdState: { state: 0 },
      GetAiState: { channel: 0, face: detector(0, 0), people: detector(0), vehicle: detector(0) },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db000d01'],
      isRecorder: true,
      channels: [
        ['Gate 1', null],
        ['Gate 2', null],
      ],
      abilities: ['canSetMotion', 'hasLight', 'hasPictures', 'hasSiren'],
      motion: false,
      ai: [],
      fitted: ['people', 'vehicle'],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'RLN36',
    firmware: 'v3.5.0.329',
    source: 'github.com/verheesj/reolink-api/pull/7',
    special:
      'its list of channels has no models, which GetChnTypeInfo has; places without a camera; a camera that sleeps',
    replies: {
      ...about('RLN36', 'v3.5.0.329', { channelNum: 36, exactType: 'NVR', name: 'Recorder', type: 'NVR' }),
      ...network('EC:71:DB:00:00:36'),
      GetP2p: { P2p: { enable: 1, uid: '95270001AB360000' } },
      ...abilities(fixed, fixed, no),
      GetChannelstatus: {
        count: 36,
        status: [
          { channel: 0, name: 'Porch', online: 1, sleep: 0, uid: '95270001AB360001' },
          { channel: 1, name: 'Porch Doorbell', online: 1, sleep: 0, uid: '95270001AB360002' },
          { channel: 2, name: 'Orchard', online: 1, sleep: 1, uid: '95270001AB360003' },
          { channel: 3, name: '', online: 0, sleep: 0, uid: '' },
        ],
      },
      'GetChnTypeInfo 0': { channel: 0, firmVer: 'v3.1.0.956_22041501', typeInfo: 'RLC-820A' },
      'GetChnTypeInfo 1': {
        channel: 1,
        firmVer: 'v3.0.0.2033_23041302',
        typeInfo: 'Reolink Video Doorbell PoE',
      },
      'GetEvents 0': { channel: 0, ai: { people: detector(1), vehicle: detector(0) }, md: detector(1) },
    },
    expected: {
      asset_keys: ['vendorcam:95270001AB360000', 'vendorcam:ec71db000036'],
      isRecorder: true,
      channels: [
        ['Porch', 'RLC-820A'],
        ['Porch Doorbell', 'Reolink Video Doorbell PoE'],
        ['Orchard', null],
      ],
      abilities: ['canSetMotion', 'hasPictures'],
      motion: true,
      ai: ['people'],
      fitted: ['people', 'vehicle'],
      stream: '/h264Preview_01_sub',
    },
  },
  {
    model: 'Argus 3 Pro on a Home Hub',
    firmware: 'v3.3.0.387',
    source: 'github.com/koush/scrypted/issues/2072; of its sensor: starkillerOG/reolink_aio, GetEvents',
    special:
      'a camera with a battery: its infrared sensor is the detector "other", and it has no other detector of motion',
    replies: {
      ...about('Reolink Home Hub', 'v3.3.0.387', {
        channelNum: 8,
        exactType: 'HOMEHUB',
        name: 'Hub',
        type: 'HOMEHUB',
      }),
      ...network('EC:71:DB:00:00:88'),
      ...abilities({ ...fixed, alarmMd: no, battery: yes, supportMd: no }),
      GetChannelstatus: {
        count: 8,
        status: [
          {
            channel: 0,
            name: 'Meadow',
            online: 1,
            sleep: 0,
            typeInfo: 'Argus 3 Pro',
            uid: '95270001AB880001',
          },
        ],
      },
      'GetEvents 0': {
        channel: 0,
        ai: {
          other: detector(1),
          people: detector(0),
          package: detector(0, 0),
          crossline: [{ alarm_state: 1 }],
        },
        md: detector(0, 0),
        visitor: detector(0, 0),
      },
    },
    expected: {
      asset_keys: ['vendorcam:ec71db000088'],
      isRecorder: true,
      channels: [['Meadow', 'Argus 3 Pro']],
      abilities: ['hasBattery', 'hasPictures'],
      motion: true,
      ai: [],
      fitted: ['people'],
      stream: '/h264Preview_01_sub',
    },
  },
];
