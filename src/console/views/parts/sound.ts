/** Short tones. Browsers allow them after the first tap on the page only; before it they are silent. */
let context: AudioContext | undefined;
const fade_s = 0.02;

/** @param hz higher means better where tones are compared */
export function beep(hz: number, seconds = 0.15) {
  try {
    context ??= new AudioContext();
    void context.resume();
    const tone = context.createOscillator();
    const volume = context.createGain();
    const now = context.currentTime;
    tone.frequency.value = hz;
    volume.gain.setValueAtTime(0, now);
    volume.gain.linearRampToValueAtTime(0.2, now + fade_s);
    volume.gain.linearRampToValueAtTime(0, now + seconds);
    tone.connect(volume).connect(context.destination);
    tone.start(now);
    tone.stop(now + seconds);
  } catch {
    // A device without sound.
  }
}
