/** The interface in all forms of the service: a kit and a service for each form, which all statements share. */
import { describe } from 'vitest';
import { formsHere, sceneFor } from '../../support/kit/interface-scene.ts';
import { peerMissing } from '../../support/peers.ts';
import { describeAssets } from './assets.ts';
import { describeClients } from './clients.ts';
import { describeDashboard } from './dashboard.ts';
import { describeKits } from './kits.ts';

describe.skipIf(peerMissing('mosquitto')).each(formsHere())('the interface, form %s', (form) => {
  const scene = sceneFor(form);
  describeAssets(scene);
  describeClients(scene);
  describeDashboard(scene);
  describeKits(scene);
});
