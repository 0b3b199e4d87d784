/**
 * Viewers of one WHEP address in the network that this process is in, some at a time: `node viewers-process.ts URL KEY COUNT`. Each watches until
 * video comes; every fifth goes without a word, as one that lost its network. Prints how many saw video, and why others did not.
 */
import { argv, exit } from 'node:process';
import { watchWhep } from './whep-viewer.ts';

const at_a_time = 5;
const packets = 20;

const [url = '', key = '', count = '0'] = argv.slice(2);
const waiting = Array.from({ length: Number(count) }, (_, n) => n);
const faults: string[] = [];
let seen = 0;

async function watchInTurn(): Promise<void> {
  for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) {
    try {
      await watchWhep(url, packets, { headers: { 'x-api-key': key }, relays: true, leaves: n % 5 !== 4 });
      seen += 1;
    } catch (error) {
      faults.push(String(error));
    }
  }
}

await Promise.all(Array.from({ length: at_a_time }, watchInTurn));
console.log(JSON.stringify({ seen, faults }));
exit(0);
