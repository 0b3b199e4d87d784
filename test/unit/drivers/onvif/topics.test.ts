/** Notifications of many makers, and the trees that they are read from. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readEnvelope } from '../../../../drivers/onvif/soap/envelope.ts';
import { topic_table } from '../../../../drivers/onvif/events/topic-table.ts';
import { notesOf, plainTopic, UnreadTopics } from '../../../../drivers/onvif/events/topics.ts';
import {
  attribute,
  escapeXml,
  everywhere,
  find,
  textAt,
  type XmlNode,
} from '../../../../drivers/onvif/soap/xml.ts';
import { threadCpu_ms } from '../../../fuzz/engine.ts';
import { forAll } from '../../../support/for-all.ts';

/** 80,000 slashes took 3 s of processor time before; they take a few ms. */
const cpu_max_ms = 1_000;

/** The tree of what is no failure. */
function parseEnvelope(xml: string): XmlNode {
  const reading = readEnvelope(xml);
  if (reading.kind !== 'read') throw new Error(reading.reason);
  return reading.body;
}

const note = (topic: string, items: string, operation = 'Changed', source = '') =>
  parseEnvelope(
    `<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><PullMessagesResponse><wsnt:NotificationMessage><wsnt:Topic>${topic}</wsnt:Topic>` +
      `<wsnt:Message><tt:Message PropertyOperation="${operation}"><tt:Source>${source}</tt:Source><tt:Data>${items}</tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage></PullMessagesResponse></e:Body></e:Envelope>`,
  );
const item = (name: string, value: string): string => `<tt:SimpleItem Name="${name}" Value="${value}"/>`;
const states = (...args: Parameters<typeof note>) => notesOf(note(...args)).map(({ state }) => state);

it.each([
  ['tns1:VideoSource/MotionAlarm', 'State', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/Motion', 'IsMotion', '1'],
  ['tns1:RuleEngine/MotionRegionDetector/Motion', 'State', '1'],
  ['tns1:RuleEngine/FieldDetector/ObjectsInside/.', 'IsInside', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/PeopleDetect', 'State', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/VehicleDetect', 'State', 'true'],
  // Capture of an RLC-1224A (klaushofrichter/cams).
  ['tns1:RuleEngine/MyRuleDetector/Non_Motor_VehicleDetect', 'State', 'true'],
  // Axis: topics of its own event documentation.
  ['tns1:RuleEngine/tnsaxis:VMD3/vmd3_video_1', 'active', '1'],
  ['tnsaxis:CameraApplicationPlatform/VMD/Camera1ProfileANY', 'active', '1'],
  ['tnsaxis:CameraApplicationPlatform/ObjectAnalytics/Device1Scenario1', 'active', '1'],
  ['tnsaxis:CameraApplicationPlatform/LoiteringGuard/Camera1ProfileANY', 'active', '1'],
  ['tns1:Device/tnsaxis:Sensor/PIR', 'state', '1'],
  // Bosch FLEXIDOME IP starlight 8000i: a rule by its name.
  ['tns1:IVA/ObjectInField/Detect_any_object', 'State', 'true'],
  ['tns1:IVA/EnteringField/Entering_field', 'State', 'true'],
  // A camera without a name (home-assistant/core#51870).
  ['tns1:RuleEngine/CellMotionDetector/Motion//.', 'IsMotion', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/People', 'IsPeople', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/Intrusion', 'IsIntrusion', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/LineCross', 'IsLineCross', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/TpSmartEvent', 'IsVehicle', 'true'],
  ['tns1:RuleEngine/PeopleDetector/People', 'IsPeople', 'true'],
  ['tns1:RuleEngine/ObjectDetection/Object', 'ClassTypes', 'Person'],
  ['tns1:RuleEngine/ObjectDetector/tnsajax:Any', 'ClassTypes', 'Vehicle'],
])('reads motion from %s', (topic, name, value) => {
  expect(states(topic, item(name, value))).toEqual(['active']);
  const idle = value === '1' ? '0' : /^[PV]/u.test(value) ? '' : 'false';
  expect(states(topic, item(name, idle))).toEqual(['idle']);
});

it.each([
  ['tns1:RuleEngine/CellMotionDetector/Tamper', 'IsTamper', 'tamper'],
  ['tns1:RuleEngine/TamperDetector/Tamper', 'IsTamper', 'tamper'],
  // Bosch and others report a covered camera so.
  ['tns1:VideoSource/GlobalSceneChange/ImagingService', 'State', 'tamper'],
  ['tns1:RuleEngine/MyRuleDetector/Visitor', 'State', 'doorbell'],
  ['tns1:VideoSource/MotionAlarm', 'State', 'motion'],
])('reads %s as a separate detection', (topic, name, detection) => {
  expect(notesOf(note(topic, item(name, 'true')))).toMatchObject([{ detection, state: 'active' }]);
  expect(notesOf(note(topic, item(name, 'false')))).toMatchObject([{ detection, state: 'idle' }]);
});

it('reads the state of Axis Object Analytics, not its empty list of classes', () => {
  const topic = 'tnsaxis:CameraApplicationPlatform/ObjectAnalytics/Device1Scenario1';
  const data = (active: string): string =>
    item('active', active) + item('objectId', '') + item('classTypes', '');
  expect(states(topic, data('1'))).toEqual(['active']);
  expect(states(topic, data('0'))).toEqual(['idle']);
  expect(states(`${topic}Threshold`, item('active', '1'))).toEqual([]);
});

it('reads no topic that is longer than any known one, and takes no time for one of slashes', () => {
  const topic = 'tns1:VideoSource/MotionAlarm';
  expect(states(`${'a/'.repeat(400)}${topic}`, item('State', 'true'))).toEqual(['active']);
  expect(states(`${'a/'.repeat(600)}${topic}`, item('State', 'true'))).toEqual([]);
  const began_ms = threadCpu_ms();
  expect(plainTopic(`${'/'.repeat(80_000)}x`)).toHaveLength(80_001);
  expect(plainTopic(`Motion${'/'.repeat(80_000)}.`)).toBe('motion');
  expect(threadCpu_ms() - began_ms).toBeLessThan(cpu_max_ms);
});

it('reads a reply with an unescaped ampersand, which costs nothing but that name', () => {
  const body = parseEnvelope(
    '<e:Envelope><e:Body><GetPresetsResponse><Preset token="1"><Name>Gate & Yard</Name></Preset>' +
      '<Preset token="a&b"><Name>Tom &amp; &#74;erry &nbsp;</Name></Preset></GetPresetsResponse></e:Body></e:Envelope>',
  );
  const presets = everywhere(body, 'preset');
  expect(presets.map((preset) => [attribute(preset, 'token'), textAt(preset, 'name')])).toEqual([
    ['1', 'Gate & Yard'],
    ['a&b', 'Tom & Jerry &nbsp;'],
  ]);
});

it('takes a crossed line for a moment without an end', () => {
  expect(states('tns1:RuleEngine/LineDetector/Crossed', item('ObjectId', '7'))).toEqual(['pulse']);
});

it.each([
  ['tns1:VideoSource/tnsaxis:Tampering', item('tampering', '1')],
  ['tns1:Device/tnsaxis:Tampering/ShockDetected', ''],
])('takes tampering that Axis reports by %s for a moment without an end', (topic, data) => {
  const read = notesOf(note(topic, data, '', item('channel', '1')));
  expect(read).toMatchObject([{ detection: 'tamper', state: 'pulse' }]);
});

it('leaves alone a state that it cannot read', () => {
  expect(states('tns1:VideoSource/MotionAlarm', item('State', 'perhaps'))).toEqual([]);
});

const meaning = (...args: Parameters<typeof note>) =>
  notesOf(note(...args)).map(({ detection, state, types }) => [detection, state, ...types].join(' '));

it.each([
  // home-assistant/core#132521: Foscam V8EP.
  ['tns1:Device/Trigger/MotionDetector', 'State', 'motion'],
  // eyetowers/gonvif#1: a recorder of Hikvision's make; its values are TRUE and FALSE.
  ['tns1:VideoAnalytics/tnshik:MotionAlarm', 'State', 'motion'],
  ['tns1:UserAlarm/VideoCover', 'State', 'tamper'],
  // danielwoz/ubiquiti-protect-onvif-event-listener: clones of Hikvision and Dahua.
  ['tns1:VehicleAlarm/IVB/VehicleDetect', 'State', 'motion', 'vehicle'],
  ['tns1:UserAlarm/IVA/HumanShapeDetect', 'State', 'motion', 'people'],
  // Captures of Milesight cameras.
  ['tns1:RuleEngine/HumanDetector/Human', 'IsHuman', 'motion', 'people'],
  ['tns1:RuleEngine/VehicleDetector/Vehicle', 'IsVehicle', 'motion', 'vehicle'],
  // Reolink, Tapo: openvideolibs/onvif-parsers; home-assistant/core#129350 (Vigi C540V), #142708 (Tapo D130).
  ['tns1:RuleEngine/MyRuleDetector/DogCatDetect', 'State', 'motion', 'dog_cat'],
  ['tns1:RuleEngine/MyRuleDetector/FaceDetect', 'State', 'motion', 'face'],
  ['tns1:RuleEngine/MyRuleDetector/Package', 'State', 'motion', 'package'],
  ['tns1:RuleEngine/TPSmartEventDetector/TPSmartEvent', 'IsVehicle', 'motion', 'vehicle'],
  ['tns1:RuleEngine/TPSmartEventDetector/TPSmartEvent', 'IsPet', 'motion', 'dog_cat'],
  // Tapo C250 (home-assistant/core#127991) and C325WB.
  ['tns1:RuleEngine/LineCrossDetector/LineCross', 'IsLineCross', 'motion', 'line_crossing'],
  ['tns1:RuleEngine/IntrusionDetector/Intrusion', 'IsIntrusion', 'motion', 'intrusion'],
  ['tns1:RuleEngine/LoiteringDetector/ObjectIsLoitering', 'State', 'motion', 'loitering'],
  // onvif_simple_server as yi-hack configures it.
  ['tns1:RuleEngine/MyRuleDetector/BabyCryingDetect', 'State', 'sound'],
  // Samsung (Hanwha): home-assistant/core#66493, and the Kerberos tests of ONVIF events.
  ['tns1:VideoAnalytics/tnssamsung:MotionDetection', 'Motion', 'motion'],
  ['tns1:VideoAnalytics/tnssamsung:TamperingDetection', 'State', 'tamper'],
  ['tns1:AudioAnalytics/tnssamsung:SoundDetection', 'State', 'sound'],
  ['tns1:OpenApp/WiseAI/LineCrossing', 'State', 'motion', 'line_crossing'],
  // Ajax: its local client; the ring of a doorbell.
  ['tns1:RuleEngine/tnsajax:MotionDetector/Detection', 'Detected', 'motion'],
  ['tns1:RuleEngine/RingDetector/Detection', 'Detected', 'doorbell'],
  // VAPIX event declarations of Axis.
  ['tns1:AudioSource/tnsaxis:TriggerLevel', 'triggered', 'sound'],
  ['tns1:Device/tnsaxis:Casing/tnsaxis:Open', 'Open', 'tamper'],
  ['tnsaxis:Storage/Disruption', 'disruption', 'storage_fault'],
  ['tns1:AudioAnalytics/Audio/DetectedSound', 'isSoundDetected', 'sound'],
  ['tns1:Device/HardwareFailure/StorageFailure', 'Failed', 'storage_fault'],
  ['tns1:VideoSource/SignalLoss', 'State', 'picture_fault', 'signal_loss'],
  ['tns1:VideoSource/ImageTooBlurry/ImagingService', 'State', 'picture_fault', 'blurry'],
  ['tns1:VideoSource/ImageTooDark/AnalyticsService', 'State', 'picture_fault', 'dark'],
  ['tns1:VideoSource/ImageTooBright/RecordingService', 'State', 'picture_fault', 'bright'],
])('reads %s as its maker means it', (topic, name, ...means) => {
  const [detection, ...types] = means;
  expect(meaning(topic, item(name, 'TRUE'))).toEqual([[detection, 'active', ...types].join(' ')]);
  expect(notesOf(note(topic, item(name, 'FALSE')))).toMatchObject([{ detection, state: 'idle' }]);
});

it.each([
  // Imou Ranger Dual: a prefix within the topic (home-assistant/core#140575).
  ['tns1:VideoSource/tns1:Device/Trigger/DigitalInput', 'InputToken', 'LogicalState', 'true'],
  // Hikvision and its clones (home-assistant/core#140491).
  ['tns1:Device/Trigger/tnshik:AlarmIn', 'AlarmInToken', 'State', 'true'],
  // Axis: VAPIX event declarations.
  ['tns1:Device/tnsaxis:IO/Port', 'port', 'state', '1'],
  // Vivotek and others: inputs in the manual of the Milestone ONVIF drivers.
  ['tns1:Device/Trigger/VivoDigitalInput', 'Index', 'Level', 'active'],
])('names the input of %s', (topic, token, name, value) => {
  const source = item(token, '00002');
  expect(meaning(topic, item(name, value), 'Changed', source)).toEqual(['digital_input active 00002']);
});

it('names what is seen from classes, and from rules that are called as what they find', () => {
  // Hikvision: the rule is Human or Vehicle (danielwoz/ubiquiti-protect-onvif-event-listener, camera 108).
  const field = 'tns1:RuleEngine/FieldDetector/ObjectsInside';
  expect(meaning(field, item('IsInside', 'true'), 'Changed', item('Rule', 'Human'))).toEqual([
    'motion active intrusion people',
  ]);
  // Avigilon and Hanwha: Mirasys, ONVIF Profile M events.
  const crossed = item('ObjectId', '2166734') + item('ClassTypes', 'Human');
  expect(meaning('tns1:RuleEngine/LineDetector/Crossed', crossed)).toEqual([
    'motion pulse line_crossing people',
  ]);
  const wise = 'tns1:OpenApp/WiseAI/ObjectDetection';
  expect(meaning(wise, item('State', 'true') + item('ClassTypes', 'Person'))).toEqual([
    'motion active people',
  ]);
  expect(meaning(wise, item('State', 'false') + item('ClassTypes', ''))).toEqual(['motion idle']);
  expect(meaning('tns1:RuleEngine/ObjectDetection/Object', item('ClassTypes', 'Human Animal'))).toEqual([
    'motion active people dog_cat',
  ]);
});

it('reads a number plate as a vehicle for a moment', () => {
  // home-assistant/core#156560: an ANPR camera of Hikvision sends what it has read, and no state.
  const plate = item('PlateNumber', 'AB123') + item('Likelihood', '71') + item('VehicleLaneNumber', '1');
  expect(meaning('tns1:RuleEngine/VehicleDetector/tnshik:Vehicle', plate)).toEqual(['motion pulse vehicle']);
});

it('reads the state of a sound from the key, where Hikvision has it', () => {
  const [sound] = notesOf(
    parseEnvelope(
      '<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><wsnt:NotificationMessage><wsnt:Topic>tns1:AudioAnalytics/Audio/DetectedSound</wsnt:Topic><wsnt:Message>' +
        `<tt:Message><tt:Key>${item('isSoundDetected', 'true')}</tt:Key><tt:Data>${item('UTCTime', '2024-01-01T00:00:00Z')}</tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage></e:Body></e:Envelope>`,
    ),
  );
  expect(sound).toMatchObject({ detection: 'sound', state: 'active' });
});

it('reads a connection that is lost as a fault, though the item is true while all is well', () => {
  const topic = 'tns1:VideoEncoder/tnsaxis:Connections';
  expect(meaning(topic, item('connected', '0'))).toEqual(['picture_fault active signal_loss']);
  expect(states(topic, item('connected', '1'))).toEqual(['idle']);
});

it('counts topics without a meaning, and those whose state it cannot read, but not those that are no events', () => {
  const unread = new UnreadTopics(() => undefined);
  const take = (topic: string, items: string): void =>
    void notesOf(note(topic, items), { onUnread: (name) => unread.note(name) });
  take('tns1:RuleEngine/tnsacme:Drone/Seen', item('State', 'true'));
  take('tns1:RuleEngine/tnsacme:Drone/Seen', item('State', 'false'));
  take('tns1:VideoSource/MotionAlarm', item('Mood', 'perhaps'));
  take('tns1:Monitoring/ProcessorUsage', item('Value', '12'));
  take('tns1:Device/Trigger/Relay', item('LogicalState', 'active'));
  expect([...unread.all]).toEqual([
    ['tns1:RuleEngine/tnsacme:Drone/Seen', 2],
    ['tns1:VideoSource/MotionAlarm', 1],
  ]);
  for (let n = 0; n < 100; n += 1) take(`tns1:Made/Up${n}`, '');
  expect(unread.all.size).toBe(32);
});

it('reads a topic as the configuration means it, before the table', () => {
  const own = [
    { topic: 'drone/seen', feed: 'ai_detection', type: 'vehicle', pulse: true },
    { topic: 'device/trigger/digitalinput', feed: 'doorbell', item: 'LogicalState', inverted: true },
    { topic: 'videosource/motionalarm', feed: 'none' },
  ] as const;
  const read = (topic: string, items: string) =>
    notesOf(note(topic, items), { own }).map(({ detection, state, types }) => [detection, state, ...types]);
  const seen = 'tns1:RuleEngine/tnsacme:Drone/Seen';
  expect(read(seen, item('Visible', 'true'))).toEqual([['motion', 'active', 'vehicle']]);
  expect(read(seen, item('Visible', 'false'))).toEqual([['motion', 'idle', 'vehicle']]);
  expect(read(seen, item('Id', '7'))).toEqual([['motion', 'pulse', 'vehicle']]);
  expect(read('tns1:Device/Trigger/DigitalInput', item('LogicalState', 'false'))).toEqual([
    ['doorbell', 'active'],
  ]);
  expect(read('tns1:VideoSource/MotionAlarm', item('State', 'true'))).toEqual([]);
});

it('has each topic once in its table', () => {
  const topics = topic_table.map(({ topic }) => topic);
  expect(topics.filter((topic, at) => topics.indexOf(topic) !== at)).toEqual([]);
  expect(topics.map((topic) => plainTopic(topic.replace(/\/\*$/u, '')))).toEqual(
    topics.map((topic) => topic.replace(/\/\*$/u, '')),
  );
});

it('keeps detectors apart by source and rule, and takes a deleted property as gone', () => {
  const topic = 'tns1:VideoSource/MotionAlarm';
  const [a, b] = ['1', '2'].map(
    (source) => notesOf(note(topic, item('State', 'true'), 'Changed', item('Source', source)))[0],
  );
  expect(a?.key).not.toBe(b?.key);
  expect(states(topic, item('State', 'true'), 'Deleted')).toEqual(['gone']);
});

it('reads topics without prefixes and without their end', () => {
  for (const end of ['', '/', '/.', '//.']) {
    expect(plainTopic(` tns1:RuleEngine/tt:Cell/Motion${end} `)).toBe('ruleengine/cell/motion');
  }
});

it('escapes any text so that it comes back as it was', () => {
  const plain = fc
    .string({ unit: 'grapheme', maxLength: 40 })
    .filter((text) => !/[^\u0020-\uD7FF]/u.test(text));
  forAll(plain, (text) => {
    const xml = `<e:Envelope><e:Body><a v="${escapeXml(text)}">${escapeXml(text)}</a></e:Body></e:Envelope>`;
    const a = find(parseEnvelope(xml), 'a');
    expect(attribute(a, 'v')).toBe(text);
    expect(textAt(a) ?? '').toBe(text.trim());
  });
});

it('reads or refuses whatever the reply is, and never throws', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '<a>',
      '</a>',
      '<e:Envelope>',
      '<e:Body>',
      'xmlns',
      ' xmlns:x="',
      '"',
      '<![CDATA[',
      '&',
      '<!--',
      '__proto__',
      '<__proto__ constructor="1"/>',
    ),
    fc.string({ maxLength: 8 }),
  );
  forAll(fc.array(piece, { maxLength: 60 }), (pieces) => {
    const reading = readEnvelope(pieces.join(''));
    if (reading.kind === 'read') everywhere(reading.body, 'x');
    expect(reading.kind === 'read' ? 'read' : reading.why).toMatch(/^(?:read|malformed)$/u);
  });
  expect({}).not.toHaveProperty('constructor.1');
});
