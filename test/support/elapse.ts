/** Lets virtual time pass, which costs nothing, where the point is that nothing bad happens meanwhile. */
export async function elapse(ms: number): Promise<void> {
  if (Date.name !== 'VirtualDate') throw new Error('a fixed wait in real time; wait for an event');
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
