// How many processes a program may have where the server runs as root: the kernel's limit for each user does not bind root, whatever the program may call itself, so each run
// is in a control group. For any other user that limit holds, and there are no groups.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CGROUPS = '/sys/fs/cgroup'

export interface ProcessGroups {
  /** A folder of the kernel's, for one run at a time. */
  take(): string
  giveBack(group: string): void
  close(): void
}

/** What starts a program inside of a group: nothing of it runs before it is in there. */
export const enterGroup = (shell: string, group: string): string[] => [shell, '-c', ENTER, join(group, 'cgroup.procs')]
const ENTER = '{ echo $$ >"$0"; } 2>/dev/null || { echo "bwrap: cannot enter $0" >&2; exit 1; }; exec "$@"'

/** Null: none is needed, or this machine has none to give. `owner` tells servers of one machine apart. */
export function createProcessGroups(owner: string, processesMax: number): ProcessGroups | null {
  const base = process.getuid?.() === 0 ? baseFolder() : null
  if (base === null) return null
  const prefix = `skerry-render-${createHash('sha256').update(owner).digest('hex').slice(0, 12)}-`
  for (const name of readdirSync(base)) if (name.startsWith(prefix)) remove(join(base, name)) // of a server that was killed
  const all: string[] = []
  const free: string[] = []
  const make = (): string => {
    const group = join(base, `${prefix}${all.length}`)
    mkdirSync(group, { recursive: true })
    writeFileSync(join(group, 'pids.max'), String(processesMax))
    all.push(group)
    return group
  }
  const groups: ProcessGroups = {
    take: () => free.pop() ?? make(),
    giveBack: (group) => void free.push(group),
    close: () => all.splice(0).forEach(remove),
  }
  try {
    groups.giveBack(groups.take())
    return groups
  } catch {
    groups.close()
    return null // they can be looked at here, but not written: a container
  }
}

function remove(group: string): void {
  try {
    rmdirSync(group)
  } catch {} // something is in it still: the next start removes it
}

/** Of version 1 the hierarchy that counts processes, of version 2 its root if that counts them for what is below. Null: there is neither. */
function baseFolder(): string | null {
  try {
    const own = /^\d+:pids:(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
    if (own !== undefined) return [join(CGROUPS, 'pids', own), join(CGROUPS, 'pids')].find((folder) => existsSync(folder)) ?? null
    return readFileSync(join(CGROUPS, 'cgroup.subtree_control'), 'utf8').split(/\s/).includes('pids') ? CGROUPS : null
  } catch {
    return null
  }
}
