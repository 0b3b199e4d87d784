/** Runs the clients driver with the options of its argument, in whatever namespace it is started, and prints each report. */
import { clients } from '../../../drivers/clients/clients.ts';
import { driverLab } from '../drivers/driver-lab.ts';

const lab = driverLab(clients, JSON.parse(process.argv[2] ?? '{}'));
let printed = 0;
setInterval(() => {
  for (; printed < lab.said.length; printed += 1) {
    process.stdout.write(`${JSON.stringify(lab.said[printed])}\n`);
  }
}, 50);
await lab.ended;
