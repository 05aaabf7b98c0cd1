// The note of a running process in its data folder, for the next process: that it runs, and which file native code is
// opening. A process that a signal ended cannot remove its note.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Opening } from './crdt-db.ts'
import { bootId } from './data-folder.ts'

const NOTE_FILE = 'run.json'

const noteSchema = z.object({
  pid: z.number().int().positive(),
  startedMs: z.number(),
  /** Another one since then means that the machine went down. Null means that the machine does not tell. */
  bootId: z.string().nullable(),
  /** The file that native code is opening. */
  opening: z.string().nullable(),
  /** A child process is trying files. */
  trying: z.boolean(),
  /** Processes in a row that died while they opened a file, by path. */
  deaths: z.record(z.string(), z.number().int().positive()),
})
type Note = z.infer<typeof noteSchema>

export interface RunRecord {
  /** True when the previous process ended without stopping: by a signal, a crash, or with its machine. */
  readonly died: boolean
  /** True when the previous process died while a child process of it tried files. */
  readonly diedTrying: boolean
  /** How many processes in a row died while they opened the file. */
  deathsAt(path: string): number
  opening: Opening
  trying<T>(work: () => T): T
  /** The process stops by itself. */
  end(): void
}

/** Call it with the lock of the folder held. Says in the log how the previous process ended, if it died. */
export function openRunRecord(folder: string, { clock, log }: { clock: Clock; log: Logger }): RunRecord {
  const path = join(folder, NOTE_FILE)
  const previous = readNote(path)
  const boot = bootId()
  const byMachine = previous !== null && previous !== 'unreadable' && previous.bootId !== null && boot !== null && previous.bootId !== boot
  if (previous !== null) tellDeath(previous, byMachine, log)
  const known = previous === null || previous === 'unreadable' ? null : previous
  // A power loss while a file is opened says nothing about the file.
  const counts = known !== null && !byMachine
  const deaths = { ...known?.deaths }
  if (counts && known.opening !== null) deaths[known.opening] = (deaths[known.opening] ?? 0) + 1

  const note: Note = { pid: process.pid, startedMs: clock.nowMs(), bootId: boot, opening: null, trying: false, deaths }
  let isTold = false
  const write = () => {
    try {
      writeFileSync(`${path}.new`, JSON.stringify(note), { mode: 0o600 })
      renameSync(`${path}.new`, path) // not synced: only the death of a process is counted, and the kernel survives that
    } catch (error) {
      if (!isTold) log.warn('cannot write the run record', { path, error: String(error) }) // a full disk keeps nobody from starting
      isTold = true
    }
  }
  const during = <T>(change: Partial<Note>, back: Partial<Note>, work: () => T): T => {
    Object.assign(note, change)
    write()
    try {
      return work()
    } finally {
      Object.assign(note, back)
      write()
    }
  }
  write()
  return {
    died: previous !== null,
    diedTrying: counts && known.trying,
    deathsAt: (file) => note.deaths[file] ?? 0,
    opening: (file, open) => {
      const { [file]: _, ...others } = note.deaths
      return during({ opening: file }, { opening: null, deaths: others }, open)
    },
    trying: (work) => during({ trying: true }, { trying: false }, work),
    end: () => rmSync(path, { force: true }),
  }
}

function readNote(path: string): Note | 'unreadable' | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return null
  }
  try {
    return noteSchema.parse(JSON.parse(text))
  } catch {
    return 'unreadable'
  }
}

function tellDeath(previous: Note | 'unreadable', byMachine: boolean, log: Logger): void {
  if (previous === 'unreadable') {
    log.warn('the previous process ended without stopping', { cause: 'unknown: its run record cannot be read' })
    return
  }
  const { pid, startedMs, opening } = previous
  log.warn('the previous process ended without stopping', {
    pid,
    started: new Date(startedMs).toISOString(),
    cause: byMachine ? 'the machine went down' : 'a signal or a crash',
    ...(opening === null ? {} : { opening }),
  })
}
