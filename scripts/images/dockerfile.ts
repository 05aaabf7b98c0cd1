// The final stage of a Dockerfile of this repository, and which file of this machine each COPY line means: it is the Debian of the build stage.
import { lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
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

/** Files of a COPY line; `/root-of-image/` is the output of scripts/image-root. */
export function filesOf({ from, to, chown }: FinalStage['copies'][number], debianRoot: string): ImageFile[] {
  if (from === '/root-of-image/') return filesBelow(debianRoot)
  return [{ path: to, owned: chown, content: contentOf(from) }]
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
export function withDebianRoot<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-image-'))
  try {
    const made = Bun.spawnSync([join(ROOT, 'scripts/image-root'), folder], { env: { ...process.env } })
    if (!made.success) throw new Error(made.stderr.toString())
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
