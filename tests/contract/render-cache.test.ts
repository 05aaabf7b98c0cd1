// What was rendered before, on a real disk: found again after a restart, bounded, sealed where secrets were read, and
// never believed further than it can be checked.

import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { type CacheFiles, createCacheFiles } from '../../server/render/cache/files.ts'
import { DependencyPaths, type Spot } from '../../server/render/cache/paths.ts'
import { createRenderCache } from '../../server/render/cache/renders.ts'
import type { KeptRender } from '../../server/render/cache/results.ts'
import type { Dependency } from '../../server/render/inputs.ts'
import type { RenderResult } from '../../server/render/object-rows.ts'
import { createOnce } from '../../server/worker/once.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { testMac } from '../support/render-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const SECRET = 'correct-horse-battery-staple'
const KEY = 'a'.repeat(32)
const keyOf = (n: number) => n.toString(16).padStart(32, '0')
const bytes = (text: string) => new TextEncoder().encode(text)
const textOf = (found: Uint8Array | null) => (found === null ? null : new TextDecoder().decode(found))

function kit({
  bytesMax = 1_000_000,
  dir = tempDir(),
  nowMs = () => 1_000_000_000_000,
}: {
  bytesMax?: number
  dir?: string
  nowMs?(): number
} = {}) {
  const renders = join(dir, 'renders')
  const seal = loadSecretBox(join(dir, 'keys'))
  const open = () => createCacheFiles({ dir: renders, seal, clock: { ...systemClock, nowMs }, bytesMax })
  return { dir, renders, open, files: open(), names: () => readdirSync(renders).sort() }
}

function rendered(text: string, digest?: string): KeptRender {
  const objects = new Map([['object/default/shop//ConfigMap/web/a', JSON.stringify({ data: text })]])
  const warnings = [{ path: 'a.yaml:1', message: 'x' }]
  return {
    result: { kind: 'rendered', objects, digest: digest ?? setDigest(objects), count: 1, hooks: 0, warnings },
    renderedFrom: `from ${text}`,
  }
}

describe('files', () => {
  test('IC8 what was written is found again by the next process', async () => {
    const { files, open } = kit()
    expect(await files.get(KEY)).toBe(null)
    await files.put(KEY, bytes('rows'), false)
    expect(textOf(await files.get(KEY))).toBe('rows')
    expect(textOf(await open().get(KEY))).toBe('rows')
  })

  test('IC10 what was made with a secret is sealed, and nobody but the server may read the folder', async () => {
    const { files, open, renders, names } = kit()
    await files.put(KEY, bytes(SECRET), true)
    await files.put(keyOf(1), bytes('open'), false)
    for (const name of names()) expect(readFileSync(join(renders, name)).includes(SECRET)).toBe(false)
    expect(textOf(await open().get(KEY))).toBe(SECRET)
    expect(statSync(renders).mode & 0o077).toBe(0)
    expect(statSync(join(renders, KEY)).mode & 0o077).toBe(0)
  })

  test('IC10 what is sealed opens only under the key that it was kept by', async () => {
    const { files, open, renders } = kit()
    await files.put(KEY, bytes(SECRET), true)
    copyFileSync(join(renders, KEY), join(renders, keyOf(1)))
    const again = open()
    expect([textOf(await again.get(keyOf(1))), textOf(await again.get(KEY))]).toEqual([null, SECRET])
  })

  test('IC10 sealed under a key that is no more: it counts as not there', async () => {
    const { renders, files, names } = kit()
    await files.put(KEY, bytes(SECRET), true)
    const other = createCacheFiles({ dir: renders, seal: loadSecretBox(tempDir()), clock: systemClock, bytesMax: 1_000_000 })
    expect(await other.get(KEY)).toBe(null)
    expect(names()).toEqual([])
  })

  test.each([
    ['cut', (path: string) => truncateSync(path, statSync(path).size - 1)],
    ['cut to nothing', (path: string) => truncateSync(path, 0)],
    ['changed', (path: string) => writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, -1), Buffer.from('x')]))],
    ['of another form', (path: string) => writeFileSync(path, 'SKR9 something else that is long enough')],
  ])('IC8 a file that was %s counts as not there, and goes', async (_, spoil) => {
    const { files, open, renders, names } = kit()
    await files.put(KEY, bytes('rows rows'), false)
    spoil(join(renders, KEY))
    expect(await open().get(KEY)).toBe(null)
    expect(names()).toEqual([])
  })

  test('IC8 foreign files and what was not written to its end go when the folder is opened', async () => {
    const { files, open, renders, names } = kit()
    await files.put(KEY, bytes('rows'), false)
    writeFileSync(join(renders, `${keyOf(1)}.new`), 'half')
    writeFileSync(join(renders, 'notes.txt'), 'x')
    mkdirSync(join(renders, keyOf(2)))
    await open().get(KEY)
    expect(names()).toEqual([KEY])
  })

  test('IC9 the longest unused go when there is no room, also after a restart; what is larger than all room is not kept', async () => {
    let nowMs = 1_000_000_000_000
    const { open, renders, names } = kit({ bytesMax: 4 * (100 + 21), nowMs: () => nowMs })
    const files = open()
    for (let n = 1; n <= 4; n++) {
      nowMs += 7_200_000
      await files.put(keyOf(n), new Uint8Array(100), false)
      utimesSync(join(renders, keyOf(n)), nowMs / 1000, nowMs / 1000)
    }
    nowMs += 7_200_000
    await files.get(keyOf(1)) // used: the others are older now
    const again = open()
    await again.put(keyOf(5), new Uint8Array(100), false)
    expect(names()).toEqual([1, 3, 4, 5].map(keyOf))
    await again.put(keyOf(6), new Uint8Array(1_000), false)
    expect(names()).toEqual([1, 3, 4, 5].map(keyOf))
  })

  test('IC8 a process that is killed in the midst of writing leaves nothing that is believed', async () => {
    const { dir, renders, open } = kit()
    const script = join(import.meta.dir, '..', 'support', 'cache-until-killed.ts')
    let whole = 0
    for (let round = 0; round < 6; round++) {
      const child = Bun.spawn([process.execPath, script, renders, join(dir, 'keys')], { stdout: 'pipe', stderr: 'inherit' })
      for await (const _ of child.stdout) break // it writes
      await Bun.sleep(5 * round)
      child.kill('SIGKILL')
      await child.exited
      const files = open()
      for (let n = 0; n < 400; n++) {
        const found = await files.get(keyOf(n))
        if (found === null) continue
        whole += 1
        expect(found.every((byte) => byte === n % 256)).toBe(true)
        expect(found.byteLength).toBe(200_000)
      }
    }
    expect(whole).toBeGreaterThan(0)
  }, 30_000)
})

describe('renders', () => {
  const dependencies: Dependency[] = [{ source: 0, path: 'shop' }, ['cluster', 'labels', 'region']]
  const cacheOf = (files: CacheFiles | null, mac = testMac) => createRenderCache({ mac, files })
  /** The point to which these values lead; looks that are not known yet are entered. */
  const walk = (paths: DependencyPaths, values: readonly string[], at: readonly Dependency[] = dependencies): Spot =>
    values.reduce((spot, value, index) => {
      const step = paths.stepAt(spot) ?? paths.add(spot, at[index] ?? [])
      return paths.next(spot, step, value)
    }, paths.start)
  const follow = (...args: Parameters<typeof walk>): string => args[0].pointOf(walk(...args))

  test('IC8 dependencies and renders are known to the next process; what failed only to this one', async () => {
    const { open } = kit()
    const before = cacheOf(open())
    const paths = await before.paths('spec')
    const key = follow(paths, ['tree', 'eu'])
    await before.savePaths('spec', paths)
    await before.put(key, rendered('eu'), false)
    const result: RenderResult = { kind: 'failed', code: 'render_failed', message: 'no', problems: [] }
    await before.put(keyOf(9), { result, renderedFrom: null }, false)
    expect((await before.get(keyOf(9)))?.result.kind).toBe('failed')

    const after = cacheOf(open())
    const found = await after.paths('spec')
    expect(found.stepAt(found.start)?.dependency).toEqual(dependencies[0])
    expect(found.stepAt(walk(found, ['tree']))?.dependency).toEqual(dependencies[1])
    expect(follow(found, ['tree', 'eu'])).toBe(key)
    expect(found.stepAt(walk(found, ['tree', 'eu']))).toBe(undefined)
    expect(await after.get(key)).toEqual(rendered('eu'))
    expect(await after.get(keyOf(9))).toBe(null)
    expect((await after.paths('other spec')).size).toBe(0)
  })

  test('IC7 a key says nothing of the values without the key of the server, and differs by spec, place and value', async () => {
    const elsewhere: Dependency[] = [{ source: 1, path: 'shop' }, ['cluster', 'labels', 'region']]
    const keyAt = async (spec: string, values: readonly string[], at = dependencies, mac = testMac) =>
      follow(await cacheOf(null, mac).paths(spec), values, at)
    const keys = [
      await keyAt('spec', ['tree', 'eu']),
      await keyAt('spec', ['tree', 'us']),
      await keyAt('spec', ['eu', 'tree']),
      await keyAt('spec', ['tree']),
      await keyAt('other', ['tree', 'eu']),
      await keyAt('spec', ['tree', 'eu'], elsewhere),
      await keyAt('spec', ['tree', 'eu'], dependencies, (text) => testMac(`other key ${text}`)),
    ]
    expect(new Set(keys).size).toBe(keys.length)
    expect(await keyAt('spec', ['tree', 'eu'])).toBe(keys[0] ?? '')
  })

  test('IC7 IC10 where renders looked is sealed: a secret may have made the name of a file', async () => {
    const { open, renders, names } = kit()
    const cache = cacheOf(open())
    const paths = await cache.paths('spec')
    follow(paths, ['tree', SECRET], [{ source: 0, path: `envs/${SECRET}.yaml` }, ['config', 'password']])
    await cache.savePaths('spec', paths)
    expect(names()).toHaveLength(1)
    for (const name of names()) {
      const bytes = readFileSync(join(renders, name))
      expect(bytes[4]).toBe(1) // sealed, so no packing hides it from this test
      expect(bytes.includes('envs/')).toBe(false)
    }
    expect((await cacheOf(open()).paths('spec')).size).toBe(1 + 1 / 8)
  })

  test('IC9 what is looked at next is forgotten beyond the bound, first what was not passed lately; what cannot be read is nothing', () => {
    const paths = new DependencyPaths('spec', testMac, 4)
    const spots = ['a', 'b', 'c', 'd', 'e'].map((name): Spot => ({ from: testMac(name), seen: '', run: null, index: 0 }))
    const [a, , , , e] = spots
    for (const spot of spots.slice(0, 4)) paths.add(spot, ['cluster', 'name'])
    if (a !== undefined) paths.stepAt(a)
    if (e !== undefined) paths.add(e, ['cluster', 'name'])
    expect(paths.size).toBe(4)
    const again = new DependencyPaths('spec', testMac)
    again.fill(paths.toBytes())
    expect(spots.map((spot) => again.stepAt(spot) !== undefined)).toEqual([true, false, true, true, true])
    again.fill(new TextEncoder().encode('no such thing'))
    expect(again.size).toBe(4)
  })

  test('IC9 rows beyond the bound leave the memory, the longest unused first, and come back from the disk', async () => {
    const { open } = kit()
    const cache = createRenderCache({ mac: testMac, files: open(), memoryBytesMax: 2_500 })
    for (const n of [1, 2]) await cache.put(keyOf(n), rendered(`${n}`.repeat(1_000)), false)
    expect(cache.peek(keyOf(1))).not.toBe(null)
    await cache.get(keyOf(1))
    await cache.put(keyOf(3), rendered('3'.repeat(1_000)), false)
    expect([1, 2, 3].map((n) => cache.peek(keyOf(n)) !== null)).toEqual([true, false, true])
    expect((await cache.get(keyOf(2)))?.result.kind).toBe('rendered')
  })

  test('IC8 rows whose digest is not theirs are not taken', async () => {
    const { open } = kit()
    const files = open()
    const cache = createRenderCache({ mac: testMac, files })
    await cache.put(KEY, rendered('x', 'f'.repeat(32)), false)
    expect(await createRenderCache({ mac: testMac, files: open() }).get(KEY)).toBe(null)
  })

  test('IC11 a program runs once for equal input, also when two ask at the same time and after a restart; one that fails is asked again', async () => {
    const { open } = kit()
    let runs = 0
    const run = async () => {
      runs += 1
      if (runs === 1) throw new Error('no')
      return bytes(`output ${SECRET}`)
    }
    const opened = () => createOnce(createRenderCache({ mac: testMac, files: open() }).answers)
    const once = opened()
    await expect(once(['helm', 'a'], run, () => true)).rejects.toThrow('no')
    const both = await Promise.all([once(['helm', 'a'], run, () => true), once(['helm', 'a'], run, () => true)])
    expect(both.map(textOf)).toEqual([`output ${SECRET}`, `output ${SECRET}`])
    expect(textOf(await opened()(['helm', 'a'], run, () => true))).toBe(`output ${SECRET}`)
    expect(runs).toBe(2)
    await once(['helm', 'b'], run, () => true)
    expect(runs).toBe(3)
  })
})
