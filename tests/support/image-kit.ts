// Images as others read and run them: skopeo, umoci and runc of Debian, unpacked by scripts/setup --install.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './source-files.ts'

const DEBIAN = join(ROOT, 'build/install/debian')
const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((folder) => join(DEBIAN, folder)).join(':')

export interface Ran {
  code: number
  out: string
  err: string
}

export function imageTool(name: 'skopeo' | 'umoci' | 'runc', args: readonly string[]): Ran {
  const ran = Bun.spawnSync([join(DEBIAN, 'usr/bin', name), ...args], {
    env: { PATH: '/usr/sbin:/usr/bin:/bin', LD_LIBRARY_PATH: LIBRARIES, XDG_RUNTIME_DIR: '/tmp' },
    timeout: 60_000,
  })
  return { code: ran.exitCode ?? -1, out: ran.stdout.toString(), err: ran.stderr.toString() }
}

/** The command before a program of another processor, or of this one with an older `cpu`. */
export const emulated = (processor: 'aarch64' | 'x86_64', cpu?: string): string[] => [
  join(DEBIAN, `usr/bin/qemu-${processor}-static`),
  ...(processor === 'aarch64' ? ['-L', join(DEBIAN, 'usr/aarch64-linux-gnu')] : []),
  ...(cpu === undefined ? [] : ['-cpu', cpu]),
]

interface RuntimeConfig {
  root: { readonly: boolean }
  process: Record<string, unknown> & { args: string[]; user: { uid: number; gid: number } }
  mounts: Array<Record<string, unknown>>
  linux: Record<string, unknown>
}

/** A bundle of the image as a Pod of the charts has it: read-only root, no capabilities, a volume at /data. */
export function bundleOf(
  layout: string,
  ref: string,
  folder: string,
): { user: { uid: number; gid: number }; args: string[]; run(args: string[]): Ran } {
  const unpacked = imageTool('umoci', ['unpack', '--image', `${layout}:${ref}`, folder])
  if (unpacked.code !== 0) throw new Error(unpacked.err)
  const path = join(folder, 'config.json')
  const config = JSON.parse(readFileSync(path, 'utf8')) as RuntimeConfig
  const { user, args } = config.process
  const data = join(folder, 'volume')
  mkdirSync(data)
  chmodSync(data, 0o777)
  const run = (words: string[]): Ran => {
    config.root.readonly = true
    Object.assign(config.process, { terminal: false, noNewPrivileges: true, args: [args[0], ...words], capabilities: {}, rlimits: [] })
    const volume = { destination: '/data', type: 'bind', source: data, options: ['rbind', 'rw'] }
    config.mounts = [...config.mounts.filter(({ destination }) => destination !== '/sys/fs/cgroup' && destination !== '/data'), volume]
    writeFileSync(path, JSON.stringify(config))
    return imageTool('runc', ['--root', join(folder, 'state'), 'run', '--bundle', folder, `skerry-${process.pid}`])
  }
  return { user, args, run }
}
