/** The tab of the browser: what it shows, and how many alarms are open, in its title and on its icon. */
let drawn = '';

export function markTab(title: string, alarms: number) {
  const text = alarms > 0 ? `(${alarms}) ${title}` : title;
  if (document.title !== text) document.title = text;
  const badge =
    alarms > 0
      ? `<circle cx="22" cy="10" r="10" fill="#d21f2e"/><text x="22" y="15" font-size="14" font-weight="700" font-family="sans-serif" fill="#fff" text-anchor="middle">${Math.min(alarms, 99)}</text>`
      : '';
  const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="1" y="5" width="26" height="26" rx="7" fill="#1f39b4"/><path d="M9 22a9 9 0 0 1 0-8M19 22a9 9 0 0 0 0-8" stroke="#fff" stroke-width="2.4" fill="none"/><circle cx="14" cy="18" r="2.6" fill="#fff"/>${badge}</svg>`;
  if (icon === drawn) return;
  drawn = icon;
  document
    .querySelector('link[rel="icon"]')
    ?.setAttribute('href', `data:image/svg+xml,${encodeURIComponent(icon)}`);
}
