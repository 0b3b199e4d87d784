/** Help for people who write their own client: addresses, examples, last frames and events. */
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import type { ServerFrame, View } from '../../types.d.ts';

export function integratorView({ choices, world }: View) {
  const kit = `${location.origin}/api/kits/${choices.kit_id ?? '{kit_id}'}`;
  const send = JSON.stringify({ payload: {} });
  const [asset] = world.assets.keys();
  const post = [
    'curl -X POST -H "X-API-Key: $KEY" -H "Content-Type: application/json" \\',
    `  -d '${send}' ${kit}/assets/${asset ?? '{asset_id}'}/commands/{command_name}`,
  ].join('\n');
  const watch = `${kit.replace(/^http/u, 'ws')}/ws   subprotocol kit.v1\n${JSON.stringify({ type: 'subscribe', assets: '*' })}`;
  const blocks = [
    { title: t.integrator.read, text: `curl -H "X-API-Key: $KEY" ${kit}/assets` },
    { title: t.integrator.send, text: post },
    { title: t.integrator.watch, text: watch },
    {
      title: t.integrator.frames,
      text: choices.frames.map((frame) => plain(frameLine(frame))).join('\n') || t.none,
    },
    { title: t.integrator.events, text: choices.events.map(plain).join('\n') || t.none },
  ];
  return html`<section class="card" id="integrators">
    <details>
      <summary class="sec">${t.integrator.title}</summary>
      <div class="pad">
        <p><a class="text-link" href="/openapi.json">${t.integrator.openapi}</a></p>
        ${blocks.map(
          ({ title, text }) =>
            html`<h3 key=${title}>${title}</h3>
              <pre tabindex="0">${text}</pre>`,
        )}
        ${location.protocol === 'http:' ? html`<p class="cap">${t.integrator.plainHttp}</p>` : ''}
      </div>
    </details>
  </section>`;
}

/** Formats a frame as one line for people who write their own client. */
function frameLine(frame: ServerFrame): string {
  const head = `${frame.time} ${frame.seq} ${frame.type}`;
  if (frame.type === 'feed')
    return `${head} ${frame.asset_id} ${plain(frame.feed)} ${plain(frame.message.data)}`;
  if (frame.type === 'asset') return `${head} ${frame.asset.id} ${frame.asset.status}`;
  return frame.type === 'task' ? `${head} ${frame.task.id} ${frame.task.status}` : head;
}
