// A worker that does what its job is named: to answer, to say something slowly, to work, to hang, to grow, to end, to
// write what is no message, to ignore that it was cancelled.
import { Channel, type Handlers } from '../../server/worker/channel/channel.ts'
import { ASKED_AT_ONCE_MAX, BEAT_EVERY_MS, FROM_CONTROL } from '../../server/worker/channel/messages.ts'
import { stdioStream } from '../../server/worker/stdio.ts'
import { endWithParent } from '../../shared/adapters/parent-death.ts'

endWithParent()
const held: Uint8Array[] = []
const odd: Record<string, () => Promise<void> | void> = {
  answer: () => {},
  wait: () => Bun.sleep(300),
  hang() {
    for (;;) held.length = 0
  },
  async grow() {
    for (;;) {
      held.push(new Uint8Array(16 * 1024 * 1024).fill(1))
      await Bun.sleep(1)
    }
  },
  work() {
    const usedMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1_000
    for (const untilMs = usedMs() + 300; usedMs() < untilMs; ) held.length = 0
  },
  ignore: () => new Promise(() => {}),
  end: () => process.exit(3),
  babble: () => void process.stdout.write('no message, but what a library prints\n'),
  child() {
    Bun.spawn(['sleep', '600'], { detached: true })
    for (;;) held.length = 0
  },
}

const handlers: Handlers = {
  greet: async () => ({ value: { build: String(process.pid) } }),
  'source.head': async (_, __, { ask }) => {
    const { value } = await ask('credentials', { secretRef: 'own' })
    return { value: { revision: JSON.stringify(value), tag: null } }
  },
  'source.has': async (order) => {
    await odd[(order as { revision: string }).revision]?.()
    return { value: { has: true } }
  },
  'source.open': async () => ({ value: { root: '', version: String(process.pid) } }),
  'source.ids': async () => ({ value: { ids: Object.keys(process.env) } }),
}
const channel = new Channel({ stream: stdioStream(), handlers, limits: FROM_CONTROL, callsMax: ASKED_AT_ONCE_MAX })
setInterval(() => channel.answering > 0 && channel.beat(), BEAT_EVERY_MS)
await channel.run()
process.exit(0)
