// The process of a worker, which only the server starts: `skerry worker`, or main.ts from source. It ends when control closes its pipe, or dies.
import { endWithParent } from '../../shared/adapters/parent-death.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { Channel } from './channel/channel.ts'
import { ASKED_AT_ONCE_MAX, BEAT_EVERY_MS, FROM_CONTROL } from './channel/messages.ts'
import { stdioStream } from './stdio.ts'
import { createWorker } from './worker.ts'

export async function runWorkerProcess(): Promise<number> {
  endWithParent()
  const { handlers, close } = createWorker({ clock: systemClock })
  const channel = new Channel({ stream: stdioStream(), handlers, limits: FROM_CONTROL, callsMax: ASKED_AT_ONCE_MAX })
  const beats = setInterval(() => channel.answering > 0 && channel.beat(), BEAT_EVERY_MS)
  await channel.run()
  clearInterval(beats)
  await close()
  return 0
}
