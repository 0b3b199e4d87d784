/** Identifies a radio: its profile, its Wi-Fi interface, and its own MAC address. */
import { DeviceUnreachable, RetryLater } from '../../../src/platform/errors.ts';
import { type Board, boardReply, fileText, type Info, infoOf } from './iwinfo.ts';
import type { Limits } from '../limits.ts';
import { macText } from './loose.ts';
import type { UbusRadio } from '../options.ts';
import type { Identity } from '../reading.ts';
import type { Ubus } from './ubus.ts';
import { answerWords } from './ubus-wire.ts';
import { texts } from '../texts.ts';

export interface Found {
  readonly profile: 'openwrt' | 'meshrider';
  readonly device: string;
  readonly info: Info;
  readonly board: Board;
  readonly identity: Identity;
}

const devices_max = 16;

/** The RF interface first, whatever its number. */
const mode_order: readonly string[] = ['Mesh Point', 'Ad-Hoc', 'Master', 'Client'];

export async function identifyRadio(ubus: Ubus, options: UbusRadio, limits: Limits): Promise<Found> {
  const grants = await ubus.open();
  if (!grants.mayCall({ object: 'iwinfo', method: 'info' })) {
    throw new RetryLater(texts.no_permission(options.username), limits.rightless_retry_ms);
  }
  const board = await boardOf(ubus);
  const profile = options.profile === 'auto' ? await profileOf(ubus, board) : options.profile;
  const { device, info } = await interfaceOf(ubus, options);
  const mac = options.identity ?? (await ownMac(ubus, device, info, limits));
  return {
    profile,
    device,
    info,
    board,
    identity: {
      mac,
      hostname: board.hostname,
      vendor: profile === 'meshrider' ? 'Doodle Labs' : null,
      model: board.sub_model ?? board.model ?? board.board_name ?? info.hardware.name,
      firmware: [board.release.distribution, board.release.version].filter(Boolean).join(' ') || null,
      serial: board.serial,
    },
  };
}

async function profileOf(ubus: Ubus, { sub_model }: Board): Promise<Found['profile']> {
  const isMeshRider = sub_model !== null || (await ubus.list()).includes('message-system');
  return isMeshRider ? 'meshrider' : 'openwrt';
}

async function boardOf(ubus: Ubus): Promise<Board> {
  const call = { object: 'system', method: 'board' };
  const answer = ubus.grants?.mayCall(call) ? await ubus.askOne(call) : undefined;
  return boardReply.parse(
    answer?.kind === 'ok' && typeof answer.body === 'object' ? (answer.body ?? {}) : {},
  );
}

async function interfaceOf(ubus: Ubus, { device }: UbusRadio) {
  const names = device === undefined ? await deviceNames(ubus) : [device];
  const answers = await ubus.ask(
    names.map((name) => ({ object: 'iwinfo', method: 'info', args: { device: name } })),
  );
  const found = names.flatMap((name, index) => {
    const answer = answers[index];
    const info = answer?.kind === 'ok' ? infoOf(answer.body) : undefined;
    return info ? [{ device: name, info }] : [];
  });
  const best = found.toSorted((a, b) => rank(a.info) - rank(b.info))[0];
  if (best) return best;
  const words = answers[0] ? ` (${answerWords(answers[0])})` : '';
  throw new DeviceUnreachable(
    device === undefined ? texts.no_wifi(words) : texts.no_such_wifi(device, words),
  );
}

async function deviceNames(ubus: Ubus): Promise<readonly string[]> {
  const answer = await ubus.askOne({ object: 'iwinfo', method: 'devices' });
  const body = answer.kind === 'ok' ? answer.body : undefined;
  const list: unknown =
    typeof body === 'object' && body !== null && 'devices' in body ? body.devices : undefined;
  const names = Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [];
  if (names.length === 0) throw new DeviceUnreachable(texts.no_interfaces);
  return names.slice(0, devices_max);
}

function rank({ mode }: Info): number {
  const at = mode_order.indexOf(mode ?? '');
  return at === -1 ? mode_order.length : at;
}

/** Only of an access point and of a mesh point is the BSSID its own address: a client reports that of its access point. */
async function ownMac(ubus: Ubus, device: string, { mode, bssid }: Info, limits: Limits): Promise<string> {
  const path = `/sys/class/net/${device}/address`;
  if (ubus.grants?.mayFile(path, 'read')) {
    const answer = await ubus.askOne({ object: 'file', method: 'read', args: { path } });
    const mac = macText.safeParse(answer.kind === 'ok' ? fileText(answer.body)?.trim() : undefined).data;
    if (mac !== undefined) return mac;
  }
  if (bssid !== null && (mode === 'Master' || mode === 'Mesh Point')) return bssid;
  throw new RetryLater(texts.no_mac(device, path), limits.rightless_retry_ms);
}
