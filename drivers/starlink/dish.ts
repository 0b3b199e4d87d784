/** Requests to a dish and the interpretation of its replies. */
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { type Answer, type Channel, grpc_status } from './api/grpc.ts';
import {
  dish_method,
  type DishHistory,
  type DishLocation,
  type DishStatus,
  parseHistory,
  parseLocation,
  parseRefusal,
  parseStatus,
  requests,
} from './api/messages.ts';
import { texts } from './texts.ts';

/** A position, none, or the reason of a refusal. */
export interface DishPosition {
  readonly location?: DishLocation | undefined;
  readonly refusal?: { readonly denied: boolean; readonly reason: string };
}

/** What a dish can be ordered to do. */
export type DishOrder = 'reboot' | 'stow' | 'unstow';

/** All throw `DeviceUnreachable` when no reply arrives. */
export interface Dish {
  /** Throws also when the device is not a dish. */
  status(): Promise<DishStatus>;
  /** Undefined when this dish keeps no history. */
  history(): Promise<DishHistory | undefined>;
  location(): Promise<DishPosition>;
  /** Sends one order, once. Resolves with the reason of a refusal, undefined when the dish accepted. */
  order(order: DishOrder): Promise<string | undefined>;
}

export function openDish(channel: Channel): Dish {
  const ask = async (request: Uint8Array): Promise<Answer> => {
    const answer = await channel.call(dish_method, request);
    if (!('message' in answer)) return answer;
    return parseRefusal(answer.message) ?? answer;
  };
  const read = async (request: Uint8Array): Promise<Answer> => {
    try {
      return await ask(request);
    } catch (error) {
      if (channel.isForgetful !== true || !(error instanceof DeviceUnreachable)) throw error;
      return ask(request);
    }
  };
  return {
    async status() {
      const answer = await read(requests.status);
      if (!('message' in answer)) {
        const isUnknown = answer.status === grpc_status.unimplemented;
        const sentence = isUnknown ? texts.status_unknown : texts.status_refused;
        throw new DeviceUnreachable(sentence(answer.reason));
      }
      const status = parseStatus(answer.message);
      if (!status) throw new DeviceUnreachable(texts.not_a_dish);
      return status;
    },
    async history() {
      const answer = await read(requests.history);
      return 'message' in answer ? parseHistory(answer.message) : undefined;
    },
    async order(order) {
      const answer = await ask(requests[order]);
      return 'message' in answer ? undefined : answer.reason;
    },
    async location() {
      const answer = await read(requests.location);
      if ('message' in answer) return { location: parseLocation(answer.message) };
      return { refusal: { denied: answer.status === grpc_status.permission_denied, reason: answer.reason } };
    },
  };
}
