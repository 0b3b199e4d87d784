/** What the topics of cameras mean: one line for each topic, in the order in which they are tried. */
import type { z } from 'zod';
import type { onvifAiType, pictureFault } from '../../../src/contract/feeds.ts';
import type { event_feeds } from '../options.ts';

export type EventFeed = (typeof event_feeds)[number];
export type EventType = z.output<typeof onvifAiType> | z.output<typeof pictureFault>;

export interface TopicLine {
  /** End of the topic in whole parts, lower case, without prefixes; `/*` at its end: whatever follows. */
  readonly topic: string;
  /** What is in `ai_detection` is in `motion` too. `none`: known, and no event for anybody. */
  readonly feed: EventFeed | 'none';
  /** Of `ai_detection` and `picture_fault`; of the first, what the notification names comes beside it. */
  readonly type?: EventType | undefined;
  /** Name of the item that holds the state; left out: one of the usual names. */
  readonly item?: string | undefined;
  /** The state is true while all is well. */
  readonly inverted?: boolean | undefined;
  /** An event that carries no state lasts for a moment. */
  readonly pulse?: boolean | undefined;
}

type Meaning = Omit<TopicLine, 'topic'>;
/** Vendor, topic, meaning, source of the fact. */
type Row = readonly [vendor: string, topic: string, meaning: Meaning, source: string];

const motion: Meaning = { feed: 'motion' };
/** Whatever the notification names, such as its `ClassTypes`. */
const objects: Meaning = { feed: 'ai_detection' };
const people: Meaning = { feed: 'ai_detection', type: 'people' };
const vehicle: Meaning = { feed: 'ai_detection', type: 'vehicle' };
const animal: Meaning = { feed: 'ai_detection', type: 'dog_cat' };
const face: Meaning = { feed: 'ai_detection', type: 'face' };
const parcel: Meaning = { feed: 'ai_detection', type: 'package' };
const line: Meaning = { feed: 'ai_detection', type: 'line_crossing', pulse: true };
const field: Meaning = { feed: 'ai_detection', type: 'intrusion' };
const loitering: Meaning = { feed: 'ai_detection', type: 'loitering' };
const tamper: Meaning = { feed: 'tamper' };
const doorbell: Meaning = { feed: 'doorbell' };
const input: Meaning = { feed: 'digital_input' };
const sound: Meaning = { feed: 'sound' };
const no_signal: Meaning = { feed: 'picture_fault', type: 'signal_loss' };
const blurry: Meaning = { feed: 'picture_fault', type: 'blurry' };
const dark: Meaning = { feed: 'picture_fault', type: 'dark' };
const bright: Meaning = { feed: 'picture_fault', type: 'bright' };
const storage: Meaning = { feed: 'storage_fault' };
const none: Meaning = { feed: 'none' };
const moment = { pulse: true } as const;

const rows: readonly Row[] = [
  // Of the specifications, and of several makers.
  ['ONVIF', 'videosource/motionalarm', motion, 'Imaging Service 6.2'],
  ['ONVIF', 'ruleengine/cellmotiondetector/motion', motion, 'Analytics Service, annex B'],
  ['ONVIF', 'ruleengine/motionregiondetector/motion', motion, 'Analytics Service, annex A'],
  ['ONVIF', 'ruleengine/motiondetector/motion', motion, 'openvideolibs/onvif-parsers'],
  ['ONVIF', 'ruleengine/fielddetector/objectsinside', field, 'Analytics Service, annex A'],
  ['ONVIF', 'ruleengine/linedetector/crossed', line, 'Analytics Service, annex A; core#166419 without data'],
  ['ONVIF', 'ruleengine/loiteringdetector/objectisloitering', loitering, 'Analytics Service, annex A'],
  ['ONVIF', 'ruleengine/objectdetection/object', objects, 'Analytics Service, annex A; core#160692'],
  ['ONVIF', 'ruleengine/tamperdetector/tamper', tamper, 'core#142708'],
  ['ONVIF', 'videosource/globalscenechange/*', tamper, 'Imaging Service 6.3'],
  ['ONVIF', 'videosource/imagetooblurry/*', blurry, 'Imaging Service 6.3; onvif-parsers'],
  ['ONVIF', 'videosource/imagetoodark/*', dark, 'Imaging Service 6.3; onvif-parsers'],
  ['ONVIF', 'videosource/imagetoobright/*', bright, 'Imaging Service 6.3; onvif-parsers'],
  ['ONVIF', 'videosource/signalloss', no_signal, 'Core, section on event topics'],
  ['ONVIF', 'device/trigger/digitalinput', input, 'Device IO Service; core#62481, #48606, #140575'],
  ['ONVIF', 'device/hardwarefailure/storagefailure', storage, 'Core, section on event topics'],
  ['ONVIF', 'audioanalytics/audio/detectedsound', sound, 'Analytics Service, annex A'],
  ['ONVIF', 'device/trigger/relay', none, 'an output of the camera; core#44123'],
  ['ONVIF', 'ruleengine/countaggregation/*', none, 'a count; core#38033, #70185'],
  ['ONVIF', 'device/hardwarefailure/fanfailure', none, 'Core, section on event topics'],
  ['ONVIF', 'device/hardwarefailure/powersupplyfailure', none, 'Core, section on event topics'],
  ['ONVIF', 'device/hardwarefailure/temperaturecritical', none, 'Core, section on event topics'],
  ['ONVIF', 'monitoring/*', none, 'Core, section on event topics'],
  ['ONVIF', 'recordingconfig/*', none, 'Recording Control Service'],
  ['ONVIF', 'media/*', none, 'Media 2 Service'],
  ['ONVIF', 'mediacontrol/*', none, 'core#49280'],
  ['ONVIF', 'configuration/*', none, 'topics of Hikvision and its clones'],
  ['ONVIF', 'ptzcontroller/*', none, 'PTZ Service'],
  // Hikvision and its clones.
  ['Hikvision', 'videoanalytics/motionalarm', motion, 'eyetowers/gonvif#1'],
  ['Hikvision', 'videoanalytics/maskalarm', tamper, 'topic list of a clone (Subscribe example of its SDK)'],
  ['Hikvision', 'useralarm/videocover', tamper, 'eyetowers/gonvif#1'],
  ['Hikvision', 'useralarm/videolost', no_signal, 'topic list of a clone (Subscribe example of its SDK)'],
  ['Hikvision', 'device/trigger/alarmin', input, 'core#140491'],
  [
    'Hikvision',
    'ruleengine/vehicledetector/vehicle',
    { ...vehicle, ...moment },
    'number plates: core#156560',
  ],
  ['Hikvision', 'device/hardwarefailure/harddiskfull', { ...storage, ...moment }, 'GetEventProperties'],
  ['Hikvision', 'device/hardwarefailure/harddiskerror', { ...storage, ...moment }, 'GetEventProperties'],
  ['Hikvision', 'useralarm/illegalaccess', none, 'failed logins; GetEventProperties'],
  ['Hikvision', 'device/network/*', none, 'GetEventProperties; gBillal/ex_onvif'],
  // Dahua and its clones.
  ['Dahua', 'useralarm/iva/humanshapedetect', people, 'onvif-parsers; core#175055'],
  ['Dahua', 'vehiclealarm/ivb/vehicledetect', vehicle, 'danielwoz/ubiquiti-protect-onvif-event-listener'],
  // Milesight.
  ['Milesight', 'ruleengine/humandetector/human', people, 'captures of its rule engine'],
  ['Milesight', 'ruleengine/animaldetector/animal', animal, 'captures of its rule engine'],
  // Reolink, and firmware that copies its topics (yi-hack, onvif_simple_server).
  ['Reolink', 'ruleengine/myruledetector/peopledetect', people, 'onvif-parsers'],
  ['Reolink', 'ruleengine/myruledetector/humandetect', people, 'Kerberos tests of ONVIF events'],
  ['Reolink', 'ruleengine/myruledetector/vehicledetect', vehicle, 'onvif-parsers'],
  ['Reolink', 'ruleengine/myruledetector/non_motor_vehicledetect', vehicle, 'klaushofrichter/cams'],
  ['Reolink', 'ruleengine/myruledetector/dogcatdetect', animal, 'onvif-parsers'],
  ['Reolink', 'ruleengine/myruledetector/facedetect', face, 'onvif-parsers'],
  ['Reolink', 'ruleengine/myruledetector/package', parcel, 'core#140585'],
  ['Reolink', 'ruleengine/myruledetector/visitor', doorbell, 'koush/scrypted#421; cam2mqtt#26'],
  [
    'yi-hack',
    'ruleengine/myruledetector/babycryingdetect',
    sound,
    'onvif_simple_server, configuration of yi-hack',
  ],
  // Tapo and Vigi: the item names what is seen.
  ['Tapo', 'ruleengine/cellmotiondetector/people', people, 'onvif-parsers'],
  ['Tapo', 'ruleengine/cellmotiondetector/intrusion', field, 'core#109198'],
  ['Tapo', 'ruleengine/cellmotiondetector/linecross', { ...line, pulse: false }, 'onvif-parsers'],
  ['Tapo', 'ruleengine/cellmotiondetector/tamper', tamper, 'onvif-parsers'],
  ['Tapo', 'ruleengine/cellmotiondetector/tpsmartevent', objects, 'onvif-parsers'],
  ['Tapo', 'ruleengine/peopledetector/people', people, 'core#129350'],
  ['Tapo', 'ruleengine/tpsmarteventdetector/tpsmartevent', objects, 'onvif-parsers; Tapo-Control#304'],
  ['Tapo', 'ruleengine/linecrossdetector/linecross', { ...line, pulse: false }, 'core#127991, #142708'],
  ['Tapo', 'ruleengine/intrusiondetector/intrusion', field, 'core#127991'],
  // Axis: applications whose profiles and scenarios are numbered.
  ['Axis', 'videoanalytics/motiondetection', motion, 'VAPIX event declarations; Samsung: core#66493'],
  ['Axis', 'ruleengine/vmd3/*', motion, 'Kane610/axis'],
  ['Axis', 'ruleengine/videomotiondetection/motion', motion, 'its application Video Motion Detection 2'],
  ['Axis', 'cameraapplicationplatform/vmd/*', motion, 'Kane610/axis'],
  ['Axis', 'cameraapplicationplatform/motionguard/*', motion, 'Kane610/axis'],
  ['Axis', 'cameraapplicationplatform/fenceguard/*', { ...line, pulse: false }, 'Kane610/axis'],
  ['Axis', 'cameraapplicationplatform/loiteringguard/*', loitering, 'Kane610/axis'],
  ['Axis', 'cameraapplicationplatform/loiteringdetector/*', loitering, 'Kane610/axis'],
  ['Axis', 'cameraapplicationplatform/objectanalytics/*', objects, 'Kane610/axis; Mirasys, Profile M'],
  ['Axis', 'device/sensor/pir', motion, 'VAPIX event declarations'],
  ['Axis', 'device/io/port', input, 'VAPIX event declarations'],
  ['Axis', 'device/io/virtualinput', input, 'VAPIX event declarations'],
  [
    'Axis',
    'audiosource/triggerlevel',
    { ...sound, item: 'triggered' },
    'VAPIX event declarations; Kane610/axis',
  ],
  ['Axis', 'videosource/tampering', { ...tamper, ...moment }, 'VAPIX event declarations'],
  ['Axis', 'device/tampering/shockdetected', { ...tamper, ...moment }, 'VAPIX event declarations'],
  ['Axis', 'device/casing/open', { ...tamper, item: 'open' }, 'VAPIX event declarations'],
  ['Axis', 'storage/disruption', { ...storage, item: 'disruption' }, 'VAPIX event declarations'],
  [
    'Axis',
    'videoencoder/connections',
    { ...no_signal, item: 'connected', inverted: true },
    'VAPIX event declarations, "Video connected"',
  ],
  ['Axis', 'device/status/*', none, 'VAPIX event declarations'],
  ['Axis', 'device/light/*', none, 'Kane610/axis'],
  ['Axis', 'device/systemmessage/*', none, 'VAPIX event declarations'],
  ['Axis', 'device/monitor/heartbeat', none, 'VAPIX event declarations'],
  ['Axis', 'connector/*', none, 'VAPIX event declarations'],
  ['Axis', 'mediaclip/*', none, 'VAPIX event declarations'],
  ['Axis', 'storage/recording', none, 'VAPIX event declarations'],
  ['Axis', 'useralarm/recurring/*', none, 'VAPIX event declarations'],
  ['Axis', 'videosource/daynightvision', none, 'VAPIX event declarations'],
  ['Axis', 'videosource/livestreamaccessed', none, 'VAPIX event declarations'],
  // Bosch: rules of its analytics by the names that their users gave them.
  ['Bosch', 'iva/objectinfield/*', field, 'captures of FLEXIDOME 8000i'],
  ['Bosch', 'iva/enteringfield/*', field, 'core#166418'],
  ['Bosch', 'iva/leavingfield/*', field, 'captures of FLEXIDOME 8000i'],
  ['Bosch', 'iva/crossingline/*', { ...line, pulse: false }, 'captures of FLEXIDOME 8000i'],
  ['Bosch', 'iva/loitering/*', loitering, 'captures of FLEXIDOME 8000i'],
  // Hanwha (Samsung, Wisenet).
  ['Hanwha', 'openapp/wiseai/linecrossing', { ...line, pulse: false }, 'Mirasys, Profile M events'],
  ['Hanwha', 'openapp/wiseai/objectdetection', objects, 'Mirasys, Profile M events'],
  ['Hanwha', 'videoanalytics/tamperingdetection', tamper, 'Milestone ONVIF drivers, "Tampering"'],
  ['Hanwha', 'audioanalytics/sounddetection', sound, 'Kerberos tests of ONVIF events'],
  ['Hanwha', 'audiosource/audiodetection', sound, 'topic list of Samsung cameras (LTS)'],
  ['Hanwha', 'iva/loiteringdetection', loitering, 'topic list of Samsung cameras (LTS)'],
  // Others.
  ['Foscam', 'device/trigger/motiondetector', motion, 'core#132521'],
  ['Ajax', 'ruleengine/motiondetector/detection', motion, 'onvif-parsers'],
  ['Ajax', 'ruleengine/objectdetector/any', objects, 'core#160692'],
  ['Ajax', 'ruleengine/linedetector/crossing', line, 'onvif-parsers'],
  ['Ajax', 'ruleengine/ringdetector/detection', doorbell, 'local client for Ajax video edges'],
  ['Avigilon', 'ruleengine/objectcrosses', line, 'Mirasys, Profile M events'],
  ['Vivotek', 'vivodigitalinput', input, 'Milestone ONVIF drivers, "Inputs"'],
  ['several', 'binaryinput', input, 'Milestone ONVIF drivers, "Inputs"'],
  ['several', 'adaptivemotion/triggered', motion, 'Milestone ONVIF drivers, "Motion"'],
  ['several', 'directionalmotion/triggered', motion, 'Milestone ONVIF drivers, "Motion"'],
  ['several', 'camerasabotage/triggered', tamper, 'Milestone ONVIF drivers, "Tampering"'],
];

export const topic_table: readonly TopicLine[] = rows.map(([, topic, meaning]) =>
  Object.assign({ topic }, meaning),
);
