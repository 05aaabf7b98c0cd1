// What a process and all that came of it take of this machine, as the kernel tells it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

export interface TreeSize {
  processes: number
  /** Of their own: pages of programs and libraries are shared and not counted. */
  memoryBytes: number
}

/** Larger trees are not counted to their end. */
const COUNTED_MAX = 512

/** Of a process and all that it started, as far as they are still below it; of none that there is, one process without memory. */
export function measureTree(pid: number): TreeSize {
  let processes = 0
  let memoryBytes = 0
  const queue = [pid]
  for (let next = queue.pop(); next !== undefined && processes < COUNTED_MAX; next = queue.pop()) {
    processes += 1
    memoryBytes += ownMemory(next)
    queue.push(...childrenOf(next))
  }
  return { processes, memoryBytes }
}

/** Of all threads: each has the children that it made. A process that just ended has none. */
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
