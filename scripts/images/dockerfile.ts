// The final stage of a Dockerfile of this repository, and which file each COPY line means: for x64 of this machine,
// which is the Debian of the build stage; for arm64 of the parts that scripts/setup --targets made.
import { lstatSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..', '..')

export interface FinalStage {
  base: string
  user: string
  workdir: string
  entrypoint: string[]
  cmd: string[]
  ports: string[]
  env: string[]
  volumes: string[]
  copies: Array<{ from: string; to: string; chown: boolean }>
}

export function finalStage(file: string): FinalStage {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n')
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')))
  const value = (word: string) => stage.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? ''
  const all = (word: string) => stage.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const copies = stage.flatMap((line) => {
    const [, chown, from, to] = /^COPY --from=(?:build|programs) (--chown=\S+ )?(\S+) (\S+)$/.exec(line) ?? []
    if (from !== undefined && to !== undefined) return [{ from, to, chown: chown !== undefined }]
    if (/^(COPY|ADD|RUN)\b/.test(line)) throw new Error(`${file}: a line that is not understood: ${line}`)
    return []
  })
  const list = (word: string) => JSON.parse(value(word)) as string[]
  return {
    ...{ base: value('FROM'), user: value('USER'), workdir: value('WORKDIR'), copies },
    ...{ entrypoint: list('ENTRYPOINT'), cmd: list('CMD'), ports: all('EXPOSE'), env: all('ENV'), volumes: all('VOLUME') },
  }
}

/** Certificates of the package ca-certificates alone: the bundle of a machine may have authorities of its own. */
const CERTIFICATES = '/usr/share/ca-certificates/mozilla'
const CERTIFICATES_BUNDLE = '/etc/ssl/certs/ca-certificates.crt'

export type Content = { kind: 'file'; path: string } | { kind: 'text'; text: string } | { kind: 'dir' } | { kind: 'link'; target: string }

export interface ImageFile {
  path: string
  content: Content
  /** Owner: the user of the image instead of root. */
  owned: boolean
}

export type Architecture = 'amd64' | 'arm64'

const TARGETS = join(ROOT, 'build/targets')
export const DEBIAN_ARM64 = join(TARGETS, 'debian-arm64')
/** The Dockerfiles name files of x64. */
const armPath = (path: string): string =>
  path.replace('/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1').replace('/lib/x86_64-linux-gnu/', '/lib/aarch64-linux-gnu/')

/** Files of a COPY line; `/root-of-image/` is the output of scripts/image-root. */
export function filesOf({ from, to, chown }: FinalStage['copies'][number], debianRoot: string, architecture: Architecture): ImageFile[] {
  if (from === '/root-of-image/') return filesBelow(debianRoot)
  const isArm = architecture === 'arm64'
  return [{ path: isArm ? armPath(to) : to, owned: chown, content: isArm ? armContentOf(from) : contentOf(from) }]
}

function armContentOf(from: string): Content {
  if (from.startsWith('/lib/'))
    return { kind: 'file', path: join(DEBIAN_ARM64, armPath(from).replace('ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1')) }
  if (from.startsWith('/src/dist/')) return { kind: 'file', path: join(ROOT, 'dist/arm64', from.slice('/src/dist/'.length)) }
  if (from.startsWith('/out/')) return { kind: 'file', path: join(TARGETS, 'render-arm64', from.slice('/out/'.length)) }
  return contentOf(from)
}

function contentOf(from: string): Content {
  if (from === '/empty') return { kind: 'dir' }
  if (from === CERTIFICATES_BUNDLE) {
    const names = [...new Bun.Glob('*.crt').scanSync(CERTIFICATES)].sort()
    if (names.length < 100) throw new Error(`${CERTIFICATES} has ${names.length} certificates; install the package ca-certificates`)
    return { kind: 'text', text: names.map((name) => `${readFileSync(join(CERTIFICATES, name), 'utf8').trim()}\n`).join('') }
  }
  if (from.startsWith('/src/')) return { kind: 'file', path: join(ROOT, from.slice('/src/'.length)) }
  if (from.startsWith('/out/')) return { kind: 'file', path: join(ROOT, 'build/render', from.slice('/out/'.length)) }
  return { kind: 'file', path: from }
}

function filesBelow(folder: string): ImageFile[] {
  return [...new Bun.Glob('**').scanSync({ cwd: folder, onlyFiles: false, followSymlinks: false, dot: true })].sort().flatMap((path) => {
    const full = join(folder, path)
    const found = lstatSync(full)
    if (found.isDirectory()) return []
    const content: Content = found.isSymbolicLink() ? { kind: 'link', target: readlinkSync(full) } : { kind: 'file', path: full }
    return [{ path: `/${path}`, content, owned: false }]
  })
}

/** Runs scripts/image-root into a folder that is gone afterwards. */
export function withDebianRoot<T>(architecture: Architecture, use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-image-'))
  try {
    const from = architecture === 'arm64' ? [realpathSync(DEBIAN_ARM64)] : []
    const made = Bun.spawnSync([join(ROOT, 'scripts/image-root'), folder, ...from], { env: { ...process.env } })
    if (!made.success) throw new Error(made.stderr.toString())
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
