// The submodules of one repository, however deep they are: a folder for each address, bounds for all of them together,
// and what writes into a folder one after the other.
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { SizedCache } from '../sized-cache.ts'
import type { Source } from '../source.ts'
import { packBytes } from './folder.ts'

export interface ModuleBounds {
  /** Repositories. */
  count: number
  /** On the disk. */
  bytes: number
  /** The duration of a fetch before a rest of the same length; idle time counts as rest. */
  ms: number
}
export const MODULE_BOUNDS: ModuleBounds = { count: 50, bytes: 4 * 1024 * 1024 * 1024, ms: 10 * 60_000 }
const SOURCES_OPEN_MAX = 100

export class Modules {
  private readonly dir: string
  private readonly clock: Clock
  private readonly bounds: ModuleBounds
  private readonly onRemove: (dir: string) => void
  private readonly opened = new SizedCache<Source>(SOURCES_OPEN_MAX, () => 1)
  /** Folders that the commit needs which was fetched last. The others stay as long as there is room. */
  private readonly used = new Set<string>()
  private readonly turns = new Map<string, Promise<unknown>>()
  private spent = { ms: 0, atMs: 0, restUntilMs: 0 }
  /** After each of them sources are opened again: their state belongs to a deleted folder. */
  private removals = 0

  constructor(dir: string, clock: Clock, onRemove: (dir: string) => void, bounds: ModuleBounds = MODULE_BOUNDS) {
    this.onRemove = onRemove
    this.dir = dir
    this.clock = clock
    this.bounds = bounds
  }

  newCommit(): void {
    this.used.clear()
  }

  /** `address` names the folder; `open` is asked for a source of that commit in it. */
  async source(address: string, commit: string, open: (dir: string) => Source): Promise<Source> {
    const name = sha256Hex(address).slice(0, 16)
    const key = `${name} ${commit} ${this.removals}`
    const source = this.opened.get(key) ?? open(join(this.dir, name))
    this.opened.set(key, source)
    const isNew = !this.used.has(name)
    this.used.add(name)
    // A stored commit waits for no other.
    if (await source.has(commit)) return source
    await this.inTurn(name, async () => {
      if (await source.has(commit)) return
      this.used.add(name)
      try {
        await this.makeRoom(name)
      } catch (error) {
        if (isNew) this.used.delete(name)
        throw error
      }
      await this.timed(() => source.fetch())
    })
    return source
  }

  private async makeRoom(name: string): Promise<void> {
    const { count, bytes } = this.bounds
    if (this.used.size > count) throw refused(`it has more than ${count} submodules, including nested ones`)
    const folders = await this.folders()
    let held = folders.reduce((sum, folder) => sum + folder.bytes, 0)
    let left = folders.length + (folders.some((folder) => folder.name === name) ? 0 : 1)
    for (const folder of folders.filter((one) => !this.used.has(one.name))) {
      if (held < bytes && left <= count) return
      if (this.used.has(folder.name)) continue // since the look at the disk
      await this.remove(folder.name)
      held -= folder.bytes
      left--
    }
    if (held >= bytes) throw refused(`its submodules need more than ${bytes / 1024 / 1024} MiB on the disk of this server`)
  }

  /** The ones that changed least lately first. */
  private async folders(): Promise<{ name: string; bytes: number }[]> {
    const names = (await readdir(this.dir).catch(() => [])).filter((name) => !name.includes('.'))
    const found = await Promise.all(
      names.map(async (name) => {
        const at = await stat(join(this.dir, name, 'objects', 'pack')).catch(() => null)
        return { name, bytes: await packBytes(join(this.dir, name)), changedMs: at?.mtimeMs ?? 0 }
      }),
    )
    return found.sort((a, b) => a.changedMs - b.changedMs)
  }

  private async remove(name: string): Promise<void> {
    const all = (await readdir(this.dir)).filter((one) => one === name || one.startsWith(`${name}.`))
    this.removals++
    this.onRemove(join(this.dir, name))
    for (const one of all) await rm(join(this.dir, one), { recursive: true, force: true })
  }

  private async timed<T>(act: () => Promise<T>): Promise<T> {
    const { ms } = this.bounds
    const startMs = this.clock.nowMs()
    const { restUntilMs } = this.spent
    if (startMs < restUntilMs && startMs >= restUntilMs - ms)
      // before that a clock was set back
      throw new AppError('git_unreachable', {
        detail: `its submodules took more than ${ms / 1_000} s; the server continues after a pause of the same length`,
      })
    this.rested(startMs)
    try {
      return await act()
    } finally {
      const nowMs = this.clock.nowMs()
      const spentMs = this.spent.ms + nowMs - startMs
      this.spent = { ms: spentMs, atMs: nowMs, restUntilMs: spentMs < ms ? 0 : nowMs + ms }
    }
  }

  private rested(nowMs: number): void {
    const ms = this.spent.restUntilMs > 0 ? 0 : Math.max(0, this.spent.ms - Math.max(0, nowMs - this.spent.atMs))
    this.spent = { ms, atMs: nowMs, restUntilMs: 0 }
  }

  private inTurn<T>(name: string, act: () => Promise<T>): Promise<T> {
    const mine = (this.turns.get(name) ?? Promise.resolve()).then(act)
    const done = mine.then(
      () => {},
      () => {},
    )
    this.turns.set(name, done)
    void done.then(() => {
      if (this.turns.get(name) === done) this.turns.delete(name)
    })
    return mine
  }
}

const refused = (detail: string): AppError => new AppError('source_refused', { detail })
