// How many processes a program may have where the server runs as root: the kernel's limit for each user does not bind
// root, whatever the program may call itself, so each run is in a control group. For any other user that limit holds,
// and there are no groups.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CGROUPS = '/sys/fs/cgroup'
const PREFIX = 'skerry-render-'

export interface ProcessGroups {
  /** A folder of the kernel's, for one run at a time. */
  take(): string
  giveBack(group: string): void
  close(): void
}

/**
 * The arguments that start a program inside of a control group, so that no part of it runs outside. In version 1 a
 * thread may move itself, and the shell has only one thread, so the shell moves itself. Moving a process takes longer
 * than everything else around a program, because the kernel waits for all processors.
 */
export function enterGroup(shell: string, group: string, limits: string): string[] {
  const tasks = join(group, 'tasks')
  return existsSync(tasks) ? [shell, '-c', enter('0', limits), tasks] : [shell, '-c', enter('$$', limits), join(group, 'cgroup.procs')]
}
/** `limits`: commands of a shell that come before the program, too. */
const enter = (who: string, limits: string): string =>
  `{ echo ${who} >"$0" && ${limits}; } 2>/dev/null || { echo "bwrap: cannot enter $0 with its limits" >&2; exit 1; }; exec "$@"`

/** Null if none is needed, or this machine offers none. `owner` tells apart the groups of one process. */
export function createProcessGroups(owner: string, processesMax: number): ProcessGroups | null {
  const base = process.getuid?.() === 0 ? baseFolder() : null
  if (base === null) return null
  for (const name of readdirSync(base)) if (isLeft(name)) remove(join(base, name))
  const own = `${PREFIX}${process.pid}-${createHash('sha256').update(owner).digest('hex').slice(0, 12)}-`
  const free: string[] = []
  let made = 0
  const groups: ProcessGroups = {
    take() {
      const group = free.pop() ?? join(base, `${own}${made++}`)
      mkdirSync(group, { recursive: true })
      writeFileSync(join(group, 'pids.max'), String(processesMax))
      return group
    },
    giveBack: (group) => void free.push(group),
    close: () => free.splice(0).forEach(remove),
  }
  try {
    groups.giveBack(groups.take())
    return groups
  } catch {
    groups.close()
    return null // they can be looked at here, but not written: a container
  }
}

/** By a server that was killed. */
function isLeft(name: string): boolean {
  const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split('-')[0]) : Number.NaN
  return Number.isInteger(pid) && !existsSync(`/proc/${pid}`)
}

function remove(group: string): void {
  try {
    rmdirSync(group)
  } catch {} // something is in it still: the next start removes it
}

/**
 * For version 1, the hierarchy that counts processes; for version 2, its root if that counts processes below it. Null
 * if there is neither.
 */
function baseFolder(): string | null {
  try {
    const own = /^\d+:pids:(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
    if (own !== undefined) return [join(CGROUPS, 'pids', own), join(CGROUPS, 'pids')].find((folder) => existsSync(folder)) ?? null
    return readFileSync(join(CGROUPS, 'cgroup.subtree_control'), 'utf8').split(/\s/).includes('pids') ? CGROUPS : null
  } catch {
    return null
  }
}
