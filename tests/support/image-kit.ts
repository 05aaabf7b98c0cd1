// Images and packages as others read and run them: skopeo, umoci, runc, crun and rpm of Debian, unpacked by
// scripts/setup --install.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from './source-files.ts'
import { tempDir } from './temp-dir.ts'

const DEBIAN = join(ROOT, 'build/install/debian')
const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((folder) => join(DEBIAN, folder)).join(':')

export interface Ran {
  code: number
  out: string
  err: string
}

const TOOL_ENV = {
  PATH: '/usr/sbin:/usr/bin:/bin',
  LD_LIBRARY_PATH: LIBRARIES,
  XDG_RUNTIME_DIR: '/tmp',
  RPM_CONFIGDIR: join(DEBIAN, 'usr/lib/rpm'),
}
const tool = (name: string): string => join(DEBIAN, 'usr/bin', name)
/** Runtimes that start a bundle as the kubelet's do. */
export type Runtime = 'runc' | 'crun'

export function imageTool(name: 'skopeo' | 'umoci' | 'rpm' | Runtime, args: readonly string[]): Ran {
  const ran = Bun.spawnSync([tool(name), ...args], { env: TOOL_ENV, timeout: 60_000 })
  return { code: ran.exitCode ?? -1, out: ran.stdout.toString(), err: ran.stderr.toString() }
}

/** The command before a program of another processor, or of this one with an older `cpu`. */
export const emulated = (processor: 'aarch64' | 'x86_64', cpu?: string): string[] => [
  join(DEBIAN, `usr/bin/qemu-${processor}-static`),
  ...(processor === 'aarch64' ? ['-L', join(DEBIAN, 'usr/aarch64-linux-gnu')] : []),
  ...(cpu === undefined ? [] : ['-cpu', cpu]),
]

/** In namespaces of its own, registers the interpreter $1 for programs of arm64 and becomes the rest. */
const REGISTER = String.raw`set -e
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":arm64:M::$magic:$mask:$1:" | cat >/proc/sys/fs/binfmt_misc/register
shift
exec "$@"`

/** The command before a program of arm64 that starts itself again, as the server does for its workers. It needs a
 *  kernel with a binfmt_misc for each user namespace (Linux 6.7): see `lacksBinfmt`. */
export function emulatedWithChildren(): string[] {
  const interpreter = join(tempDir(), 'arm64')
  writeFileSync(interpreter, `#!/bin/sh\nexec ${emulated('aarch64').join(' ')} "$@"\n`, { mode: 0o755 })
  return ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', REGISTER, 'sh', interpreter]
}

export const lacksBinfmt = (): string | null =>
  Bun.spawnSync([...emulatedWithChildren(), 'true']).success ? null : 'needs a binfmt_misc for each user namespace'

interface RuntimeConfig {
  root: { readonly: boolean }
  process: Record<string, unknown> & { args: string[]; user: { uid: number; gid: number } }
  mounts: Array<Record<string, unknown>>
  linux: Record<string, unknown>
}

export interface Container {
  /** The whole log so far. */
  log(): string
  running(): boolean
  /** As the kubelet does: SIGTERM, then the container is removed. */
  stop(): Promise<void>
}

export interface Bundle {
  user: { uid: number; gid: number }
  args: string[]
  run(args: string[]): Ran
  /** With the network of this machine. `mounts`: read-only files and folders, where in the container → path here. */
  start(args: string[], mounts?: Readonly<Record<string, string>>): Container
}

/** A bundle of the image as a Pod of the charts has it: read-only root, no capabilities, a volume at /data, a folder at
 *  /tmp. */
export function bundleOf(layout: string, ref: string, folder: string, runtime: Runtime = 'runc'): Bundle {
  // The image for this processor, as a registry hands it out: umoci itself does not choose among platforms.
  const single = `${folder}-amd64`
  const chosen = ['--insecure-policy', '--override-os', 'linux', '--override-arch', 'amd64']
  const copied = imageTool('skopeo', [...chosen, 'copy', `oci:${layout}:${ref}`, `oci:${single}:${ref}`])
  if (copied.code !== 0) throw new Error(copied.err)
  const unpacked = imageTool('umoci', ['unpack', '--image', `${single}:${ref}`, folder])
  if (unpacked.code !== 0) throw new Error(unpacked.err)
  const path = join(folder, 'config.json')
  const text = readFileSync(path, 'utf8')
  const { user, args } = (JSON.parse(text) as RuntimeConfig).process
  const data = join(folder, 'volume')
  mkdirSync(data)
  chmodSync(data, 0o777)
  let started = 0
  const write = (words: string[], mounts: Readonly<Record<string, string>>, hostNetwork: boolean): string => {
    const config = JSON.parse(text) as RuntimeConfig & { linux: { namespaces: Array<{ type: string }> } }
    config.root.readonly = true
    Object.assign(config.process, { terminal: false, noNewPrivileges: true, args: [args[0], ...words], capabilities: {}, rlimits: [] })
    const bound = ([destination, source]: [string, string]) => ({ destination, type: 'bind', source, options: ['rbind', 'ro'] })
    const volume = { destination: '/data', type: 'bind', source: data, options: ['rbind', 'rw'] }
    const kept = config.mounts.filter(({ destination }) => destination !== '/sys/fs/cgroup' && destination !== '/data')
    config.mounts = [...kept, volume, ...Object.entries(mounts).map(bound)]
    if (hostNetwork) config.linux.namespaces = config.linux.namespaces.filter(({ type }) => type !== 'network')
    writeFileSync(path, JSON.stringify(config))
    started += 1
    return `skerry-${process.pid}-${basename(folder)}-${started}`
  }
  const state = ['--root', join(folder, 'state')]
  return {
    user,
    args,
    run: (words) => imageTool(runtime, [...state, 'run', '--bundle', folder, write(words, {}, false)]),
    start(words, mounts = {}) {
      const name = write(words, mounts, true)
      const log = join(folder, `${name}.log`)
      const child = Bun.spawn([tool(runtime), ...state, 'run', '--bundle', folder, name], {
        ...{ env: TOOL_ENV, stdin: 'ignore', stdout: Bun.file(log), stderr: Bun.file(log) },
      })
      return {
        log: () => (existsSync(log) ? readFileSync(log, 'utf8') : ''),
        running: () => child.exitCode === null,
        async stop() {
          imageTool(runtime, [...state, 'kill', name, 'TERM'])
          const end = setTimeout(() => imageTool(runtime, [...state, 'kill', name, 'KILL']), 20_000)
          await child.exited
          clearTimeout(end)
          imageTool(runtime, [...state, 'delete', '--force', name])
        },
      }
    },
  }
}
