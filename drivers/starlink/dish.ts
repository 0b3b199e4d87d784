/** The questions that are put to a dish, with what its answers mean. */
import { DeviceUnreachable } from '../../src/errors.ts';
import { type Answer, type Channel, grpc_status } from './grpc.ts';
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
} from './messages.ts';

/** A position, or none, or why the dish does not say. */
export interface Whereabouts {
  readonly location?: DishLocation | undefined;
  readonly refusal?: { readonly denied: boolean; readonly reason: string };
}

/** All throw `DeviceUnreachable` when there is no answer. */
export interface Dish {
  /** Throws too when the device is no dish. */
  status(): Promise<DishStatus>;
  /** Undefined when this dish keeps none. */
  history(): Promise<DishHistory | undefined>;
  location(): Promise<Whereabouts>;
}

export function openDish(channel: Channel): Dish {
  const ask = async (request: Uint8Array): Promise<Answer> => {
    const answer = await channel.call(dish_method, request);
    if (!('message' in answer)) return answer;
    return parseRefusal(answer.message) ?? answer;
  };
  return {
    async status() {
      const answer = await ask(requests.status);
      if (!('message' in answer)) throw new DeviceUnreachable(`refuses to tell its status: ${answer.reason}`);
      const status = parseStatus(answer.message);
      if (!status)
        throw new DeviceUnreachable(
          'answers, but not as a dish; a Starlink router does so on its own address',
        );
      return status;
    },
    async history() {
      const answer = await ask(requests.history);
      return 'message' in answer ? parseHistory(answer.message) : undefined;
    },
    async location() {
      const answer = await ask(requests.location);
      if ('message' in answer) return { location: parseLocation(answer.message) };
      return { refusal: { denied: answer.status === grpc_status.permission_denied, reason: answer.reason } };
    },
  };
}
