// The files that a kustomization needs: read through the recorded tree, so that a change elsewhere in a repository of
// five hundred services renders nothing again. All errors of its names are reported at once, with file and line.
import { type ParsedYaml, parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import { AppError, type Problem } from '../../../shared/runtime/error.ts'
import { sopsFormatOf } from '../../../shared/sops/read.ts'
import { SOURCE_FILES_MAX, SOURCE_TREE_BYTES_MAX } from '../../sources/source.ts'
import { renderFile, type TemplateJob, templateName } from '../liquid/files.ts'
import { versionText } from '../object-rows.ts'
import type { RenderJob } from '../renderer.ts'
import { clearSopsFile } from '../sops/clear-file.ts'
import { treePath } from '../tree-path.ts'
import { decodeUtf8 } from '../utf8.ts'
import { type Chart, type Named, type Need, namedBy, namedByPlugins } from './fields.ts'
import { inFolder, isAddress, isBelow, KUSTOMIZATION_NAMES, looksRemote } from './paths.ts'
import { parseRemote, REMOTE_FIELDS, type RemoteAddress } from './remote.ts'
import { RemoteTrees, relativePath } from './remote-trees.ts'

/** Folders with a kustomization that one render reads. */
export const KUSTOMIZE_FOLDERS_MAX = 1_000

export interface KustomizeFiles {
  /** By path from the tree's root. */
  files: Map<string, Uint8Array>
  /** Those of them that a template of that name and `.liquid` became. */
  templates: Set<string>
  problems: Problem[]
  /** A chart is among them. */
  charts: boolean
  /** Where content of remote bases was put. */
  remote: RemoteTrees
}

export interface ScanJob extends TemplateJob, Pick<RenderJob, 'bases' | 'openSops'> {
  /** Whether `helmCharts` of kustomizations is inflated. */
  helmCharts: boolean
  /** Whether kustomizations may name remote content. */
  remoteBases: boolean
}

/** The kustomization of the source's folder with all that it and its bases name, and nothing else of the tree.
 *  `more.folders`: components that the service adds. Problems are in the answer. */
export async function scanKustomization(job: ScanJob, more: { folders: readonly string[] }): Promise<KustomizeFiles> {
  const scan = new Scan(job)
  const root = treePath('', job.source.root) ?? ''
  if (!(await scan.readFolder(root))) scan.problem(root === '' ? '.' : root, `has no ${KUSTOMIZATION_NAMES.join(', ')}`)
  for (const folder of more.folders) {
    const path = treePath(root, folder) ?? ''
    if (!(await scan.readFolder(path))) scan.problem('kustomize.components', `${folder} is not a folder with a kustomization`)
  }
  await scan.finish()
  return { files: scan.files, templates: scan.templates, problems: scan.problems, charts: scan.charts, remote: scan.remote }
}

interface Place {
  file: string
  folder: string
  /**
   * True if the files that it names configure plugins, because one of `generators`, `transformers` or `validators` led
   * to it.
   */
  isOfPlugins: boolean
}

class Scan {
  readonly files = new Map<string, Uint8Array>()
  readonly templates = new Set<string>()
  readonly problems: Problem[] = []
  charts = false
  readonly remote: RemoteTrees
  private readonly job: ScanJob
  private readonly folders = new Set<string>()
  private readonly queue: Array<{ need: Need; place: Place }> = []
  private bytes = 0

  constructor(job: ScanJob) {
    this.job = job
    this.remote = new RemoteTrees(job.source.tree, job.bases)
  }

  problem(path: string, message: string): void {
    this.problems.push({ path, message })
  }

  async finish(): Promise<void> {
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
      if (this.files.size > SOURCE_FILES_MAX || this.bytes > SOURCE_TREE_BYTES_MAX) {
        this.problem(next.place.file, `needs more than ${SOURCE_FILES_MAX} files or ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB; split it`)
        return
      }
      await this.unlessRefused(`${next.place.file}:${next.need.line}`, () => this.read(next.need, next.place))
    }
  }

  /** Links that lead out, LFS pointers and their like are errors as any other: said with all the rest. */
  private async unlessRefused(at: string, read: () => Promise<void>): Promise<void> {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'source_refused') throw error
      this.problem(at, error.message)
    }
  }

  /** False: it holds no kustomization. */
  async readFolder(folder: string, isOfPlugins = false): Promise<boolean> {
    const read = isOfPlugins ? `${folder}\0plugins` : folder
    if (this.folders.has(read)) return true
    if (this.folders.size >= KUSTOMIZE_FOLDERS_MAX) {
      if (this.folders.size === KUSTOMIZE_FOLDERS_MAX)
        this.problem(folder, `is one more than ${KUSTOMIZE_FOLDERS_MAX} folders with kustomizations`)
      return true
    }
    const found: Array<[file: string, bytes: Uint8Array]> = []
    for (const name of KUSTOMIZATION_NAMES) {
      const path = inFolder(folder, name)
      const bytes = await this.readFile(path)
      if (bytes !== null) found.push([path, bytes])
    }
    if (found.length === 0) return false
    this.folders.add(read)
    for (const [file, bytes] of found) this.readKustomization({ file, folder, isOfPlugins }, bytes)
    return true
  }

  private readKustomization(place: Place, bytes: Uint8Array): void {
    const text = decodeUtf8(bytes)
    if (text === null) {
      this.problem(place.file, 'is not UTF-8 text')
      return
    }
    const parsed = parseYamlDocuments(text, { file: place.file })
    this.problems.push(...parsed.problems)
    const [document] = parsed.documents
    if (document === undefined || typeof document.value !== 'object' || document.value === null || Array.isArray(document.value)) return
    this.take(namedBy(document.value as Record<string, unknown>, parsed, text), place)
  }

  private take({ needs, charts, refused }: Named, place: Place): void {
    for (const { line, message } of refused) this.problem(`${place.file}:${line}`, message)
    for (const need of needs) this.queue.push({ need, place })
    for (const chart of charts) this.takeChart(chart, place)
  }

  private takeChart({ name, version, home, line }: Chart, place: Place): void {
    if (!this.job.helmCharts) {
      const message =
        'helmCharts is not enabled; set render.kustomize.helmCharts of the service to true, or make the chart a separate source'
      this.problem(`${place.file}:${line}`, message)
      return
    }
    this.charts = true
    // Where kustomize looks first when a version is said.
    const folders = [...(version === null ? [] : [`${home}/${name}-${version}/${name}`]), `${home}/${name}`]
    this.queue.push({ need: { kind: 'chart', path: folders.join('\n'), field: 'helmCharts', line, optional: false }, place })
  }

  private async read(need: Need, place: Place): Promise<void> {
    const at = `${place.file}:${need.line}`
    if (need.kind === 'chart') return this.readChart(need, place)
    if (this.job.remoteBases && (need.kind === 'either' || need.kind === 'folder')) {
      const remote = parseRemote(need.path, need.kind === 'either')
      if (remote?.kind === 'refused') return this.problem(at, `${need.field}: ${withoutQuery(need.path)}: ${remote.message}`)
      if (remote !== null) return this.readRemote(remote, need, place)
    }
    if (isAddress(need.path)) return this.problem(at, remoteMessage(need))
    const path = this.remote.resolve(place.folder, need.path)
    if (path === null) return this.problem(at, `${need.field}: ${need.path} leads outside the repository`)
    const isOfPlugins = place.isOfPlugins || need.kind === 'plugin'
    if (need.kind === 'folder') {
      if (!(await this.readFolder(path, isOfPlugins))) this.problem(at, await this.missingFolder(need, path))
      return
    }
    const mayBeFolder = need.kind !== 'file'
    // Reading a folder as if it were a file would count as reading all its content.
    const folderFirst = mayBeFolder && !/\.(ya?ml|json)$/i.test(path)
    if (folderFirst && (await this.readFolder(path, isOfPlugins))) return
    const bytes = this.files.get(path) ?? (await this.readFile(path))
    if (bytes === null) {
      if (mayBeFolder && !folderFirst && (await this.readFolder(path, isOfPlugins))) return
      if (!need.optional) this.problem(at, mayBeFolder ? await this.missingFolder(need, path) : missingMessage(need))
      return
    }
    if (!isBelow(path, place.folder)) return this.problem(at, outsideMessage(need, path, place.folder))
    if (IN_CLEAR.test(need.field)) await this.readInClear(need, path, bytes)
    if (mayBeFolder && isOfPlugins) this.readPlugins(path, bytes, place)
  }

  /** SP7: kustomize reads what is in the file, so that it cannot stay encrypted. */
  private async readInClear({ field }: Need, path: string, bytes: Uint8Array): Promise<void> {
    const text = decodeUtf8(bytes)
    const format = text === null ? null : sopsFormatOf(text)
    if (text === null || format === null) return
    if (field.startsWith('configMapGenerator')) return this.problem(path, NO_SECRET)
    const clear = await clearSopsFile(this.job, text, format)
    if (clear.kind === 'closed') this.problem(path, clear.message)
    else this.keep(path, new TextEncoder().encode(clear.text))
  }

  /** KU12: a fetched base is read as if it lay in the tree, and the kustomization gets its path there. */
  private async readRemote({ base, path }: Extract<RemoteAddress, { kind: 'remote' }>, need: Need, place: Place): Promise<void> {
    const at = `${place.file}:${need.line}`
    const told = (message: string) => this.problem(at, `${need.field}: ${withoutQuery(need.path)} ${message}`)
    const opened = await this.remote.open(base, place.folder)
    if (opened.kind === 'refused') return told(opened.message)
    if (opened.kind === 'file') {
      const file = inFolder(place.folder, opened.name)
      this.keep(file, opened.bytes)
      return this.remote.rewrite(place.file, need.path, opened.name)
    }
    const folder = inFolder(opened.prefix, path)
    if (!(await this.readFolder(folder)))
      return told(`has no ${KUSTOMIZATION_NAMES.join(', ')} in ${path === '' ? 'its root' : path} at ${versionText(opened.revision)}`)
    this.remote.rewrite(place.file, need.path, relativePath(place.folder, folder))
  }

  private readPlugins(path: string, bytes: Uint8Array, place: Place): void {
    const text = decodeUtf8(bytes)
    const parsed: ParsedYaml | null = text === null ? null : parseYamlDocuments(text, { file: path })
    if (parsed === null) {
      this.problem(path, 'is not UTF-8 text')
      return
    }
    this.problems.push(...parsed.problems)
    // Names in its documents start at the kustomization's folder, not at theirs.
    this.take(namedByPlugins(parsed), { ...place, file: path })
  }

  private async readChart(need: Need, place: Place): Promise<void> {
    const at = `${place.file}:${need.line}`
    for (const written of need.path.split('\n')) {
      const folder = this.remote.resolve(place.folder, written)
      if (folder === null) return this.problem(at, `helmCharts: ${written} leads outside the repository`)
      const { tree, prefix, path: inTree } = this.remote.at(folder)
      if ((await tree.file(inFolder(inTree, 'Chart.yaml'))) === null) continue
      for (const [path, { bytes }] of await tree.files(inTree, () => true)) this.keep(inFolder(prefix, path), bytes)
      return
    }
    const last = need.path.split('\n').at(-1) ?? ''
    this.problem(at, `helmCharts: no chart in ${last}; renders download nothing: put the chart there, or make the chart a separate source`)
  }

  /** As what it is rendered to, when it is a template. Null means that there is none. */
  private async readFile(path: string): Promise<Uint8Array | null> {
    const { tree, prefix, path: inTree } = this.remote.at(path)
    if (prefix !== '') {
      const found = await tree.file(inTree)
      if (found !== null) this.keep(path, found.bytes)
      return found?.bytes ?? null
    }
    const plain = await tree.file(path)
    const template = plain === null ? await tree.file(templateName(path)) : null
    const found = plain ?? template
    if (found === null) return null
    if (plain === null) this.templates.add(path)
    else if ((await tree.id(templateName(path))) !== null)
      this.problem(templateName(path), `also exists as ${path}, which is its output; keep one of the two`)
    const rendered = await renderFile(plain === null ? templateName(path) : path, found.bytes, this.job)
    if (rendered.kind === 'failed') this.problems.push(...rendered.problems)
    const bytes = rendered.kind === 'failed' ? new Uint8Array() : rendered.bytes
    this.keep(path, bytes)
    return bytes
  }

  private keep(path: string, bytes: Uint8Array): void {
    if (!this.files.has(path)) this.bytes += bytes.byteLength
    this.files.set(path, bytes)
  }

  private async missingFolder(need: Need, path: string): Promise<string> {
    const { tree, path: inTree } = this.remote.at(path)
    const isThere = (await tree.id(inTree)) !== null
    if (isThere) return `${need.field}: ${need.path} has no ${KUSTOMIZATION_NAMES.join(', ')}`
    return looksRemote(need.path) ? remoteMessage(need) : missingMessage(need)
  }
}

/** Fields whose files kustomize takes apart. */
const IN_CLEAR = /^(secretGenerator|configMapGenerator)\[\]\.envs?$|^helmCharts\[\]\.valuesFile$/
const NO_SECRET = 'is encrypted by SOPS, and a ConfigMap would show its values; use secretGenerator'

const missingMessage = ({ kind, field, path }: Need): string =>
  kind === 'file' ? `${field}: file ${path} does not exist` : `${field}: file or folder ${path} does not exist`

const remoteMessage = ({ field, path }: Need): string =>
  `${field}: ${withoutQuery(path)} is a remote base, which this service does not allow; ${REMOTE_FIELDS.includes(field) ? 'set render.kustomize.remoteBases to true, or ' : ''}put a copy into the repository (kustomize localize makes one)`
/** A query may hold a token. */
const withoutQuery = (path: string): string => path.replace(/\/\/[^/@]*@/, '//').replace(/\?.*$/, '')

const outsideMessage = ({ field, path }: Need, resolved: string, folder: string): string =>
  `${field}: ${path} (${resolved}) is outside ${folder}; a kustomization reads only files of its own folder: move it, or use a folder with a kustomization as a resource`
