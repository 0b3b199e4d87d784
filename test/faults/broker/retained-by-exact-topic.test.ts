/** A broker that gives no retained messages to subscriptions with wildcards, as RabbitMQ does. */
import { describe, expect, it } from 'vitest';
import { downTopic } from '../../../src/contract/topics.ts';
import { eventually } from '../../support/eventually.ts';
import { test_kit } from '../../support/gps.ts';
import { kitAt } from '../../support/brokers/kit-scene.ts';

const topics = {
  ack: downTopic(test_kit, { kind: 'ack' }),
  config: downTopic(test_kit, { kind: 'config' }),
  sync: downTopic(test_kit, { kind: 'sync' }),
};

describe('a kit at a broker that has nothing retained for wildcards', () => {
  it(
    'subscribes to what may be retained by its exact topic, and answers down/sync with its state',
    { tags: 'long' },
    async () => {
      const subscribed: string[] = [];
      const { broker, kit } = await kitAt({
        onSubscribed: (filters, peer) => {
          subscribed.push(...filters);
          if (filters.includes(topics.sync)) peer.publish(topics.sync, '{}', 5);
        },
      });
      const states = (): number[] =>
        broker.published
          .filter(({ topic }) => topic.endsWith('/up/state'))
          .map(({ payload }) => (JSON.parse(payload) as { seq: number }).seq);
      await eventually('connected', () => kit.uplink.online);
      expect(subscribed).toEqual(expect.arrayContaining([topics.ack, topics.config, topics.sync]));
      await eventually('the state comes again', () => states().length === 2);
      expect(states()).toEqual([1, 2]);
    },
  );
});
