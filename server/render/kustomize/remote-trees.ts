// The trees that a kustomization is read from: the source's own, and those of remote bases as folders of it, so that
// kustomize finds everything on the disk.
import { parseYamlDocuments, toYaml } from '../../../shared/adapters/yaml.ts'
import type { AppError, Problem } from '../../../shared/runtime/error.ts'
import { SINGLE_FILE, type SourceTree } from '../../sources/source.ts'
import type { RenderJob } from '../renderer.ts'
import { treePath } from '../tree-path.ts'
import { inFolder, isBelow } from './paths.ts'
import { baseFolder, baseName, REMOTE_BASES_MAX, REMOTE_DEPTH_MAX, REMOTE_FIELDS, type RemoteBase, shownBase } from './remote.ts'

/** Folder of the tree that holds those of remote bases. */
const REMOTE_FOLDER = 'remote-bases'

interface Mount {
  base: RemoteBase
  prefix: string
  tree: SourceTree
  revision: string
  /** 1 means that a kustomization of the source itself names it. */
  depth: number
}

export type Opened =
  | { kind: 'folder'; prefix: string; revision: string }
  | { kind: 'file'; name: string; bytes: Uint8Array }
  | { kind: 'refused'; message: string }

export interface InTree {
  tree: SourceTree
  /** '' means the source's own tree. */
  prefix: string
  /** Path in `tree`. */
  path: string
}

export class RemoteTrees {
  private readonly own: SourceTree
  private readonly bases: RenderJob['bases']
  private readonly mounts = new Map<string, Mount>()
  private readonly asked = new Set<string>()
  /** By the file of a kustomization: what is written, and the path that takes its place. */
  private readonly rewrites = new Map<string, Map<string, string>>()

  constructor(own: SourceTree, bases: RenderJob['bases']) {
    this.own = own
    this.bases = bases
  }

  /** The tree in which a path lies. */
  at(path: string): InTree {
    const mount = this.mountOf(path)
    return mount === null
      ? { tree: this.own, prefix: '', path }
      : { tree: mount.tree, prefix: mount.prefix, path: path.slice(mount.prefix.length + 1) }
  }

  /** A path as a file of that folder writes it. Null means that it leads out of its tree. */
  resolve(folder: string, written: string): string | null {
    const { prefix, path } = this.at(folder)
    const resolved = treePath(path, written)
    return resolved === null ? null : inFolder(prefix, resolved)
  }

  /** KU14. `folder`: that of the kustomization that names the base. Throws what reading the base throws. */
  async open(base: RemoteBase, folder: string): Promise<Opened> {
    if (this.bases === undefined) return { kind: 'refused', message: 'is not fetched here: only a server fetches remote bases' }
    const depth = (this.mountOf(folder)?.depth ?? 0) + 1
    if (depth > REMOTE_DEPTH_MAX)
      return { kind: 'refused', message: `is more than ${REMOTE_DEPTH_MAX} remote bases deep; put a copy into the repository` }
    const name = baseName(base)
    const known = this.mounts.get(name)
    if (known !== undefined) return this.openedOf(known)
    if (this.asked.size >= REMOTE_BASES_MAX && !this.asked.has(name))
      return { kind: 'refused', message: `is one more than ${REMOTE_BASES_MAX} remote bases; put a copy into the repository` }
    this.asked.add(name)
    const found = await this.bases(base)
    if (found.kind === 'pending') return { kind: 'refused', message: 'is being fetched' }
    if (found.kind === 'failed')
      return { kind: 'refused', message: `cannot be fetched: ${found.error.message}; ${remedyOf(found.error, base)}` }
    const mount = { base, prefix: `${REMOTE_FOLDER}/${baseFolder(base)}`, tree: found.tree, revision: found.revision, depth }
    this.mounts.set(name, mount)
    return this.openedOf(mount)
  }

  rewrite(file: string, written: string, path: string): void {
    const paths = this.rewrites.get(file) ?? new Map<string, string>()
    this.rewrites.set(file, paths.set(written, path))
  }

  /** The files as kustomize gets them: with paths in place of addresses. */
  rewritten(files: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, Uint8Array> {
    if (this.rewrites.size === 0) return files
    const changed = new Map(files)
    for (const [file, paths] of this.rewrites) {
      const [document] = parseYamlDocuments(new TextDecoder().decode(files.get(file)), { file }).documents
      const edited: Record<string, unknown> = { ...(document?.value as Record<string, unknown>) }
      for (const field of REMOTE_FIELDS) {
        const list = edited[field]
        if (Array.isArray(list)) edited[field] = list.map((item: unknown) => (typeof item === 'string' ? (paths.get(item) ?? item) : item))
      }
      changed.set(file, new TextEncoder().encode(toYaml(edited)))
    }
    return changed
  }

  /** KU8. With the addresses of bases in place of the folders they were put in. */
  told(problems: readonly Problem[]): Problem[] {
    const named = (text: string) =>
      [...this.mounts.values()].reduce((all, { prefix, base }) => all.replaceAll(prefix, `${shownBase(base)}/`), text)
    return problems.map((problem) => ({ ...problem, path: named(problem.path), message: named(problem.message) }))
  }

  private mountOf(path: string): Mount | null {
    if (!path.startsWith(`${REMOTE_FOLDER}/`)) return null
    for (const mount of this.mounts.values()) if (isBelow(path, mount.prefix)) return mount
    return null
  }

  private async openedOf({ base, prefix, tree, revision }: Mount): Promise<Opened> {
    if (base.kind === 'git') return { kind: 'folder', prefix, revision }
    const file = await tree.file(SINGLE_FILE)
    return file === null
      ? { kind: 'refused', message: 'cannot be read' }
      : { kind: 'file', name: `${baseFolder(base)}.yaml`, bytes: file.bytes }
  }
}

const remedyOf = ({ code }: AppError, base: RemoteBase): string =>
  code === 'credential_missing' || code === 'credential_refused'
    ? `name a Config with credentials for ${shownBase(base)} in render.kustomize.remoteBaseSecretRefs, bound to its host`
    : 'correct the address, or put a copy into the repository'

/** From a folder of a tree to another one. */
export function relativePath(from: string, to: string): string {
  const [above, below] = [from.split('/').filter((one) => one !== ''), to.split('/').filter((one) => one !== '')]
  let common = 0
  while (common < above.length && above[common] === below[common]) common++
  return [...above.slice(common).map(() => '..'), ...below.slice(common)].join('/') || '.'
}
