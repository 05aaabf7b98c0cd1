// The process of a worker: `skerry worker`, or main.ts from source. Only the server starts it. It ends when control
// closes its pipe or dies.
import { endWithParent } from '../../shared/adapters/parent-death.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { Channel } from './channel/channel.ts'
import { ASKED_AT_ONCE_MAX, BEAT_EVERY_MS, FROM_CONTROL } from './channel/messages.ts'
import { stdioStream } from './stdio.ts'
import { createWorker } from './worker.ts'

/** Resolves with the exit code. */
export async function runWorkerProcess(): Promise<number> {
  if (!endWithParent()) return 1
  const clock = systemClock
  const { handlers, close } = createWorker({ clock })
  const channel = new Channel({ stream: stdioStream(), handlers, limits: FROM_CONTROL, callsMax: ASKED_AT_ONCE_MAX })
  const ended = new AbortController()
  void beat(channel, clock, ended.signal)
  await channel.run()
  ended.abort()
  await close()
  return 0
}

/** Signs of life while there is work. They come from the thread that works, so a thread that hangs sends none. */
async function beat(channel: Channel, clock: Clock, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    await clock.sleep(BEAT_EVERY_MS, ended)
    if (channel.answering > 0) channel.beat()
  }
}
