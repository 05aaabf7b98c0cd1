// One process of twice.ts: plays histories and writes the trace of each into a folder. Prints which uses of real time
// and of unseeded dice it met.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KINDS } from './kinds.ts'
import type { PartOfTwice } from './twice.ts'

const { histories, steps, out } = JSON.parse(process.argv[2] ?? '') as PartOfTwice
const uses = new Set<string>()

/** Whoever calls it makes a history depend on more than its seed, even if two runs happen to be equal. */
function watchUse(owner: object, name: string): void {
  const original: unknown = Reflect.get(owner, name)
  if (typeof original !== 'function') throw new Error(`there is no ${name}`)
  const watched = function (this: unknown, ...args: unknown[]) {
    const caller = (new Error().stack ?? '').split('\n')[2]?.trim() ?? ''
    uses.add(`${name} ${caller}`)
    return new.target === undefined ? Reflect.apply(original, this, args) : Reflect.construct(original, args)
  }
  if (!Reflect.set(owner, name, Object.assign(watched, original))) throw new Error(`${name} cannot be watched`)
}
watchUse(Date, 'now')
watchUse(performance, 'now')
watchUse(process.hrtime, 'bigint')
watchUse(process, 'hrtime')
watchUse(Bun, 'nanoseconds')
watchUse(Math, 'random')
watchUse(crypto, 'getRandomValues')
watchUse(crypto, 'randomUUID')
watchUse(globalThis, 'setTimeout')
watchUse(globalThis, 'setInterval')
watchUse(globalThis, 'Worker')

for (const [kind, seed] of histories) {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-sim-'))
  try {
    const { trace, problems } = await KINDS[kind](seed, dir, steps)
    writeFileSync(join(out, `${kind}-${seed}`), [...trace.lines(), ...problems].join('\n'))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
process.stdout.write(JSON.stringify([...uses]))
process.exit(0)
