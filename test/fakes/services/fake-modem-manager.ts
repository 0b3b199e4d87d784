/**
 * ModemManager on a private bus, as far as our driver looks: modems in its object manager, bearers and SIM cards
 * beside it, signals for every change. It answers at the level of messages, so that it can answer wrongly too.
 */
import type { Message } from 'dbus-native';
import { type BusService, ownName } from '../../support/drivers/bus-service.ts';

const mm = 'org.freedesktop.ModemManager1';
const root = '/org/freedesktop/ModemManager1';
const object_manager = 'org.freedesktop.DBus.ObjectManager';
const properties_name = 'org.freedesktop.DBus.Properties';

/** Signature and value of each property. */
type Properties = Record<string, readonly [signature: string, value: unknown]>;
type Interfaces = Record<string, Properties>;

export interface FakeModem {
  /** Number of its object. */
  readonly index: number;
  /** Its network interface. */
  readonly port?: string;
  readonly imei?: string;
  readonly connected?: boolean;
}

/** Kind and number, such as `Bearer/0`. */
export type FakeObject = `${'Modem' | 'Bearer' | 'SIM'}/${number}`;

/** `silent`: takes calls and answers none, `list of nonsense`: the list of modems has another type. */
export type ManagerMood = 'well' | 'silent' | 'list of nonsense' | 'refusing';

export interface FakeModemManager {
  mood: ManagerMood;
  /** Whether Signal.Setup and GetCellInfo are refused, as polkit does. */
  mayControl: boolean;
  /** The name of the error with which ModemManager answers Signal.Setup and GetCellInfo. */
  radioError: string | undefined;
  /** Number of a modem that no longer answers: calls that ModemManager passes on to it get no reply. */
  stuck: number | undefined;
  /** What GetLocation answers; undefined: it is refused. */
  location: readonly (readonly [source: number, signature: string, value: unknown])[] | undefined;
  /** Calls that came so far, by member. */
  readonly calls: ReadonlyMap<string, number>;
  /** Called with the number of each modem that is reset. */
  onReset: (index: number) => void;
  /** Whether a reset is refused, is answered, or the answer is lost; `late`: the modem is gone before its answer. */
  reset: 'accepted' | 'refused' | 'unsupported' | 'unanswered' | 'late';
  add(modem: FakeModem): void;
  remove(index: number): void;
  /** Changes a property and signals it; `silently`: the signal is lost. */
  set(object: FakeObject, interface_name: string, changes: Properties, how?: 'silently'): void;
  stop(): void;
}

/** Takes ModemManager's name on the bus. */
export async function startFakeModemManager(address: string): Promise<FakeModemManager> {
  const objects = new Map<string, Interfaces>([[root, { [mm]: { Version: ['s', '1.20.4'] } }]]);
  const calls = new Map<string, number>();
  let server: BusService | undefined;
  const send = (message: Message): void => server?.send(message);

  const news = { type: 4, path: root, interface: object_manager };

  const fake: FakeModemManager = {
    mood: 'well',
    location: [],
    mayControl: true,
    radioError: undefined,
    stuck: undefined,
    onReset: () => undefined,
    reset: 'accepted',
    calls,
    add(modem) {
      for (const [path, interfaces] of objectsOf(modem)) objects.set(path, interfaces);
      const path = `${root}/Modem/${modem.index}`;
      const body = [path, dict(objects.get(path) ?? {})];
      send({ ...news, member: 'InterfacesAdded', signature: 'oa{sa{sv}}', body });
    },
    remove(index) {
      const path = `${root}/Modem/${index}`;
      const names = Object.keys(objects.get(path) ?? {});
      for (const kind of ['Modem', 'Bearer', 'SIM']) objects.delete(`${root}/${kind}/${index}`);
      send({ ...news, member: 'InterfacesRemoved', signature: 'oas', body: [path, names] });
    },
    set(object, interface_name, changes, how) {
      const path = `${root}/${object}`;
      const interfaces = objects.get(path);
      if (!interfaces) throw new Error(`no ${path}`);
      interfaces[interface_name] = { ...interfaces[interface_name], ...changes };
      if (how === 'silently') return;
      const body = [interface_name, Object.entries(changes), []];
      const about = { type: 4, path, interface: properties_name, member: 'PropertiesChanged' };
      send({ ...about, signature: 'sa{sv}as', body });
    },
    stop: () => server?.stop(),
  };
  server = await ownName(address, mm, (call) => {
    calls.set(call.member ?? '', (calls.get(call.member ?? '') ?? 0) + 1);
    if (fake.mood === 'silent' || isStuck(call, fake)) return;
    const reply = call.member === 'Reset' ? resetReply(call, fake) : replyTo(call, objects, fake);
    if (!reply) return;
    const about = { destination: call.sender ?? '', replySerial: call.serial ?? 0 };
    send(
      'error' in reply
        ? { type: 3, ...about, errorName: reply.error, signature: 's', body: ['refused by the fake'] }
        : { type: 2, ...about, signature: reply.signature, body: reply.body },
    );
  });
  return fake;
}

type Reply = { readonly signature: string; readonly body: unknown[] } | { readonly error: string };

function replyTo(
  { path = '', member, body = [] }: Message,
  objects: ReadonlyMap<string, Interfaces>,
  fake: FakeModemManager,
): Reply {
  if (fake.mood === 'refusing') return { error: 'org.freedesktop.DBus.Error.AccessDenied' };
  if (member === 'GetManagedObjects') {
    if (fake.mood === 'list of nonsense') return { signature: 'as', body: [['nonsense']] };
    const modems = [...objects].filter(([each]) => each.startsWith(`${root}/Modem/`));
    return {
      signature: 'a{oa{sa{sv}}}',
      body: [modems.map(([each, interfaces]) => [each, dict(interfaces)])],
    };
  }
  const interfaces = objects.get(path);
  if (member === 'Setup' || member === 'GetCellInfo')
    return radioReply(member, Number(body[0]), interfaces, fake);
  if (member === 'GetLocation' && interfaces && fake.location) {
    return {
      signature: 'a{uv}',
      body: [fake.location.map(([source, type, value]) => [source, [type, value]])],
    };
  }
  return propertyReply(member, interfaces?.[String(body[0])], String(body[1]));
}

function isStuck({ member, path }: Message, { stuck }: FakeModemManager): boolean {
  const isPassedOn = member === 'Setup' || member === 'GetCellInfo';
  return isPassedOn && path === `${root}/Modem/${stuck}`;
}

/** Undefined: the modem takes the answer with it. */
function resetReply({ path = '' }: Message, fake: FakeModemManager): Reply | undefined {
  if (fake.reset === 'refused') return { error: 'org.freedesktop.ModemManager1.Error.Core.Unauthorized' };
  if (fake.reset === 'unsupported') return { error: 'org.freedesktop.ModemManager1.Error.Core.Unsupported' };
  fake.onReset(Number(path.split('/').at(-1)));
  if (fake.reset === 'late') return { error: 'org.freedesktop.ModemManager1.Error.Serial.ResponseTimeout' };
  return fake.reset === 'unanswered' ? undefined : { signature: '', body: [] };
}

/** Figures are there from the moment on in which somebody asked for them. */
function radioReply(
  member: 'Setup' | 'GetCellInfo',
  rate: number,
  interfaces: Interfaces | undefined,
  fake: FakeModemManager,
): Reply {
  if (fake.radioError !== undefined) return { error: fake.radioError };
  if (!interfaces || !fake.mayControl)
    return { error: 'org.freedesktop.ModemManager1.Error.Core.Unauthorized' };
  if (member === 'Setup') {
    const lte = { rssi: -68, rsrp: -97, rsrq: -11, snr: 9.4 };
    const figures = Object.entries(lte).map(([name, value]) => [name, ['d', value]]);
    interfaces[`${mm}.Modem.Signal`] = { Rate: ['u', rate], Lte: ['a{sv}', figures] };
    return { signature: '', body: [] };
  }
  const cell = { 'cell-type': ['u', 5], serving: ['b', true], earfcn: ['u', 6_300] };
  return { signature: 'aa{sv}', body: [[Object.entries(cell)]] };
}

function propertyReply(member: string | undefined, properties: Properties | undefined, name: string): Reply {
  if (member === 'GetAll' && properties) return { signature: 'a{sv}', body: [Object.entries(properties)] };
  const property = properties?.[name];
  if (member === 'Get' && property) return { signature: 'v', body: [property] };
  return { error: 'org.freedesktop.DBus.Error.UnknownMethod' };
}

/** As the library writes a{sa{sv}}: pairs. */
function dict(interfaces: Interfaces): unknown[] {
  return Object.entries(interfaces).map(([name, properties]) => [name, Object.entries(properties)]);
}

function objectsOf({
  index,
  port = 'wwan0',
  imei = '860000000004321',
  connected = true,
}: FakeModem): readonly [string, Interfaces][] {
  const at = (kind: string): string => `${root}/${kind}/${index}`;
  const modem: Interfaces = {
    [`${mm}.Modem`]: {
      Sim: ['o', at('SIM')],
      Bearers: ['ao', [at('Bearer')]],
      Manufacturer: ['s', 'QUALCOMM'],
      Model: ['s', 'RM520N-GL'],
      Revision: ['s', 'RM520NGLAAR03A03M4G'],
      Device: ['s', '/sys/devices/platform/soc/usb1/1-1'],
      Drivers: ['as', ['qmi_wwan', 'option']],
      Plugin: ['s', 'quectel'],
      Ports: [
        'a(su)',
        [
          ['cdc-wdm0', 6],
          [port, port.startsWith('tty') ? 3 : 2],
          ['ttyUSB9', 3],
        ],
      ],
      EquipmentIdentifier: ['s', imei],
      UnlockRequired: ['u', 1],
      State: ['i', connected ? 11 : 8],
      StateFailedReason: ['u', 0],
      AccessTechnologies: ['u', 1 << 14],
      SignalQuality: ['(ub)', [70, true]],
    },
    [`${mm}.Modem.Modem3gpp`]: {
      RegistrationState: ['u', 1],
      OperatorCode: ['s', '24001'],
      OperatorName: ['s', 'TestTel'],
    },
    [`${mm}.Modem.Location`]: { Capabilities: ['u', 7], Enabled: ['u', 1], SignalsLocation: ['b', false] },
  };
  const bearer: Interfaces = {
    [`${mm}.Bearer`]: {
      Interface: ['s', connected ? port : ''],
      Connected: ['b', connected],
      Suspended: ['b', false],
      ConnectionError: ['(ss)', ['', '']],
    },
  };
  const sim: Interfaces = {
    [`${mm}.Sim`]: {
      Active: ['b', true],
      SimIdentifier: ['s', '8946000000000000000'],
      OperatorName: ['s', 'TestTel'],
    },
  };
  return [
    [at('Modem'), modem],
    [at('Bearer'), bearer],
    [at('SIM'), sim],
  ];
}
