// Memory, processor time and number of a process and its descendants, as the kernel reports them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

export interface TreeSize {
  processes: number
  /** Their own memory: pages of programs and libraries are shared and not counted. */
  memoryBytes: number
  /** Processor time of them and of the descendants that they waited for. */
  processorMs: number
}

/** Larger trees are not counted to their end. */
const COUNTED_MAX = 512

/**
 * Measures a process and its descendants, as far as they are still below it. A process that does not exist counts as
 * one without memory.
 */
export function measureTree(pid: number): TreeSize {
  let processes = 0
  let memoryBytes = 0
  let processorMs = 0
  const queue = [pid]
  for (let next = queue.pop(); next !== undefined && processes < COUNTED_MAX; next = queue.pop()) {
    processes += 1
    memoryBytes += ownMemory(next)
    processorMs += processorMsOf(next, true) ?? 0
    queue.push(...childrenOf(next))
  }
  return { processes, memoryBytes, processorMs }
}

/** The children of all threads: each thread has those that it made. A process that just ended has none. */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
      const text = read(`/proc/${pid}/task/${thread}/children`)
      return text.split(' ').flatMap((word) => (word === '' ? [] : [Number(word)]))
    })
  } catch {
    return []
  }
}

/** The kernel tells processor time in hundredths of a second. */
const TICK_MS = 10

/** Processor time of a process since its start; `children`: and of the children that it waited for. Null for a process
 *  that does not exist. */
export function processorMsOf(pid: number, children = false): number | null {
  // The name, in brackets, may hold spaces and brackets. Four times begin at the 12th field after it: of itself in user
  // and system mode, then of its children.
  const fields = read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []
  const ticks = fields.slice(11, children ? 15 : 13).reduce((sum, field) => sum + Number(field), 0)
  return fields.length < 15 || Number.isNaN(ticks) ? null : ticks * TICK_MS
}

function ownMemory(pid: number): number {
  const status = read(`/proc/${pid}/status`)
  const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0)
  return (of('RssAnon') + of('RssShmem') + of('VmSwap')) * 1024
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Without it, memory outside of the kernel's limits is not measured. */
export const canMeasure = (pid: number): boolean => {
  try {
    readFileSync(`/proc/${pid}/task/${pid}/children`)
    return true
  } catch {
    return false
  }
}

/** When memory of the whole machine runs out, the kernel takes this one first, and not the server. */
export function offerToKernel(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000')
  } catch {} // it has ended, or there is no such file: nothing is lost
}

/** Where the server may. */
export function putFirst(pid: number): void {
  try {
    setPriority(pid, -20)
  } catch {} // not as this user, or it has ended
}
