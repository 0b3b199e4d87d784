/** A upsd that speaks the protocol of Network UPS Tools on loopback and misbehaves on command. */
import { createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../support/ports.ts';

export interface FakeUpsd {
  readonly port: number;
  /** Variables by name of the UPS; what is set counts from the next question on. */
  readonly upses: Map<string, Map<string, string>>;
  /** Lines that clients sent. */
  readonly heard: string[];
  /** Answers every LIST VAR with `ERR code`; undefined: with the variables. */
  refuse: string | undefined;
  /** Wants this password before anything else. */
  password: string | undefined;
  /** `mute` says nothing, `endless` never ends a line, `torn` sends answers byte by byte. */
  manner: 'good' | 'mute' | 'endless' | 'torn';
  lose(): Promise<void>;
  restore(): Promise<void>;
}

const endless_chunk = 'x'.repeat(65_536);

export async function startFakeUpsd(): Promise<FakeUpsd> {
  const sockets = new Set<Socket>();
  // Else the kernel holds the second letter back until the first is acknowledged: up to 40 ms of real time, in which virtual time runs on.
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let text = '';
    const client = { authenticated: false };
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    socket.on('data', (chunk: string) => {
      const lines = (text + chunk).split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        upsd.heard.push(line);
        say(socket, upsd.manner, answer(line, upsd, client));
      }
    });
  });
  const port = await freePort();
  await listen(server, port);
  const upsd: FakeUpsd = {
    port,
    upses: new Map(),
    heard: [],
    refuse: undefined,
    password: undefined,
    manner: 'good',
    async lose() {
      for (const socket of sockets) socket.destroy();
      if (server.listening)
        await new Promise((resolve) => {
          server.close(resolve);
        });
    },
    async restore() {
      if (!server.listening) await listen(server, port);
    },
  };
  return upsd;
}

function say(socket: Socket, manner: FakeUpsd['manner'], text: string): void {
  if (manner === 'mute') return;
  if (manner === 'endless') {
    const pour = (): void => {
      while (!socket.destroyed && socket.write(endless_chunk)) continue;
    };
    socket.on('drain', pour);
    pour();
    return;
  }
  if (manner === 'torn') {
    for (const letter of text) socket.write(letter);
    return;
  }
  socket.write(text);
}

function answer(line: string, upsd: FakeUpsd, client: { authenticated: boolean }): string {
  const [verb, what, name] = line.split(' ');
  if (verb === 'USERNAME') return 'OK\n';
  if (verb === 'PASSWORD') {
    client.authenticated = line === `PASSWORD "${upsd.password}"`;
    return client.authenticated ? 'OK\n' : 'ERR ACCESS-DENIED\n';
  }
  if (upsd.password !== undefined && !client.authenticated) return 'ERR ACCESS-DENIED\n';
  if (line === 'LIST UPS') {
    const rows = [...upsd.upses.keys()].map((ups) => `UPS ${ups} "battery \\"of\\" the kit"\n`);
    return `BEGIN LIST UPS\n${rows.join('')}END LIST UPS\n`;
  }
  if (verb !== 'LIST' || what !== 'VAR') return 'ERR UNKNOWN-COMMAND\n';
  if (upsd.refuse !== undefined) return `ERR ${upsd.refuse}\n`;
  const variables = upsd.upses.get(name ?? '');
  if (!variables) return 'ERR UNKNOWN-UPS\n';
  const rows = [...variables].map(
    ([key, value]) => `VAR ${name} ${key} "${value.replaceAll(/["\\]/gu, String.raw`\$&`)}"\n`,
  );
  return `BEGIN LIST VAR ${name}\n${rows.join('')}END LIST VAR ${name}\n`;
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
}
