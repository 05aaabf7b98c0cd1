// A node with a real systemd as process 1: namespaces of its own, over files of this machine that it changes for itself
// alone. It shares the network, and needs root.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { tempDir } from './temp-dir.ts'

export interface Ran {
  code: number
  out: string
  err: string
}

export interface SystemdNode {
  /** As root on the node. */
  run(command: readonly string[], stdin?: string): Ran
  /** Throws unless it ends with 0; answers its standard output. */
  must(command: readonly string[], stdin?: string): string
  /** Folder of this machine that the node sees at /media. */
  shared: string
  stop(): Promise<void>
}

/** Why there is no such node here; null if there is. */
export const lacksSystemd = (): string | null =>
  !existsSync('/lib/systemd/systemd') ? 'no systemd' : process.getuid?.() !== 0 ? 'needs root' : null

/**
 * Control groups of version 2 alone, below one of this node. No unit that is enabled on this machine: what is left up
 * to basic.target belongs to systemd. A machine-id, because a first boot would enable all installed units; no networkd,
 * because the network is that of this machine. /proc/sys and /sys are read-only: settings of the kernel are those of
 * this machine, too.
 */
const BOOT = `set -e
work=$1 shared=$2
mount --make-rprivate /
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/job" "$work/root"
root=$work/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/job" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --rbind /dev "$root/dev"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
for folder in tmp dev/shm; do mount -t tmpfs tmpfs "$root/$folder"; done
mount --bind "$shared" "$root/media"
rm -rf "$root/etc/systemd/system"
mkdir -p "$root/etc/systemd/system"
for unit in systemd-networkd.service systemd-networkd.socket systemd-udevd.service; do ln -s /dev/null "$root/etc/systemd/system/$unit"; done
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
cd "$root"
pivot_root . .
umount -l .
mount --make-rshared / # systemd expects it of a container: credentials are mounted by a child
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=basic.target --show-status=no
`

export async function startSystemdNode(): Promise<SystemdNode> {
  const [work, shared] = [tempDir(), tempDir()]
  // The first shell makes the group whose root the namespace then shows; the mount is gone with it.
  const enter = 'mount -t cgroup2 cgroup2 /mnt && mkdir "/mnt/$1" && echo $$ >"/mnt/$1/cgroup.procs" && shift && exec "$@"'
  // Processes of the node leave their groups a moment after they were killed.
  const clear =
    'mount -t cgroup2 cgroup2 /mnt; for n in 1 2 3 4 5 6 7 8 9; do find "/mnt/$1" -depth -type d -exec rmdir {} + && exit; sleep 0.3; done'
  const name = `skerry-node-${process.pid}`
  const log = join(tempDir(), 'log')
  const child = startChild(
    [
      ...['unshare', '--mount', 'sh', '-c', enter, 'sh', name],
      ...['unshare', '--mount', '--pid', '--fork', '--kill-child', '--ipc', '--uts', '--cgroup', 'sh', '-c', BOOT, 'sh', work, shared],
    ],
    log,
  )
  const init = (): number => Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0])
  const run = (command: readonly string[], stdin = ''): Ran => {
    const ran = Bun.spawnSync(['nsenter', '-t', String(init()), '-m', '-p', '-i', '-u', '-C', '-r', '-w', ...command], {
      ...{ stdin: Buffer.from(stdin), env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' }, timeout: 60_000 },
    })
    return { code: ran.exitCode ?? -1, out: ran.stdout.toString(), err: ran.stderr.toString() }
  }
  const isUp = async () => /running|degraded/.test(run(['systemctl', 'is-system-running']).out)
  await waitUntil('systemd is up', isUp, { child })
  return {
    run,
    shared,
    must(command, stdin) {
      const { code, out, err } = run(command, stdin)
      if (code !== 0) throw new Error(`${command.join(' ')}: ${code} ${err}${out}`)
      return out
    },
    async stop() {
      await child.kill()
      Bun.spawnSync(['unshare', '--mount', 'sh', '-c', clear, 'sh', name])
    },
  }
}
