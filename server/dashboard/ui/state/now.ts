// The time as pages show it: ages advance together, once in ten seconds, and only while the page is visible.
import { signal } from '@preact/signals'

const TICK_MS = 10_000
export const nowMs = signal(Date.now())

setInterval(() => {
  if (document.visibilityState === 'visible') nowMs.value = Date.now()
}, TICK_MS)
document.addEventListener('visibilitychange', () => {
  nowMs.value = Date.now()
})
