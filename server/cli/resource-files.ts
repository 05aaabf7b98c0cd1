// Files, folders and stdin into resource documents. Problems carry file and line of the field that they are about, so
// that an editor can jump there.
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { explainIssues, pathSegments, withoutReadOnly } from '../../shared/model/explain.ts'
import { API_VERSION, type Applicable, applicableSchema } from '../../shared/model/resources.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'

const EXTENSIONS = ['.yaml', '.yml', '.json']

export interface ResourceFile {
  /** As problems name it. */
  name: string
  text: string
}

export async function readResourceFiles(
  paths: readonly string[],
  recursive: boolean,
  readStdin: () => Promise<string>,
): Promise<ResourceFile[]> {
  const files: ResourceFile[] = []
  for (const path of paths) {
    if (path === '-') {
      files.push({ name: 'stdin', text: await readStdin() })
      continue
    }
    const found = await stat(path).catch(() => null)
    if (found === null) throw new AppError('not_found', { detail: `file or folder ${path} does not exist`, remedy: 'Check the path.' })
    const names = found.isDirectory() ? await filesIn(path, recursive) : [path]
    if (names.length === 0)
      throw new AppError('not_found', {
        detail: `no ${EXTENSIONS.join(', ')} file in ${path}`,
        remedy: 'Check the path; -R also reads subfolders.',
      })
    for (const name of names) files.push({ name, text: await readFile(name, 'utf8') })
  }
  return files
}

async function filesIn(folder: string, recursive: boolean): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const names: string[] = []
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && recursive) names.push(...(await filesIn(path, recursive)))
    else if (entry.isFile() && EXTENSIONS.includes(extname(entry.name))) names.push(path)
  }
  return names
}

export interface ReadDocument {
  document: unknown
  /** `file:line` of a field, by its path as problems have it; of the document for ''. */
  placeOf(path: string): string
}
export interface ReadResource extends ReadDocument {
  resource: Applicable
}

/** Everything that the files hold, or everything that is wrong with them. `wrong`: those that could be read and are no
 *  resource. */
export function parseResources(files: readonly ResourceFile[]): { read: ReadResource[]; wrong: ReadDocument[]; problems: Problem[] } {
  const read: ReadResource[] = []
  const wrong: ReadDocument[] = []
  const problems: Problem[] = []
  for (const { name, text } of files) {
    const parsed = parseYamlDocuments(text, { file: name })
    problems.push(...parsed.problems)
    if (parsed.problems.length > 0) continue
    const lines = text.split('\n')
    for (const { value, line } of parsed.documents) {
      for (const document of itemsOf(value)) {
        const input = withoutReadOnly(document)
        const checked = applicableSchema.safeParse(input)
        const first = document === value ? line : parsed.lineOf(document)
        const placeOf = (path: string) => `${name}:${lineOfField(document, pathSegments(path), first, lines, parsed.lineOf)}`
        if (checked.success) read.push({ resource: checked.data, document: input, placeOf })
        else {
          wrong.push({ document: input, placeOf })
          const foreign = foreignVersion(document)
          if (foreign !== null) {
            problems.push({ path: placeOf('apiVersion'), message: `apiVersion: ${foreign} is not of Skerry; ${BELONGS_IN_GIT}` })
            continue
          }
          const found = explainIssues(applicableSchema, input, checked.error, (path) => parsed.wordAt(document, path)).map(
            ({ path, segments, message }) => {
              const at = lineOfField(document, segments, first, lines, parsed.lineOf)
              return { at, path: `${name}:${at}`, message: path === '' ? message : `${path}: ${message}` }
            },
          )
          problems.push(...found.sort((a, b) => a.at - b.at).map(({ path, message }) => ({ path, message })))
        }
      }
    }
  }
  return { read, wrong, problems }
}

const BELONGS_IN_GIT = 'Kubernetes objects belong in a repository that a Service delivers: see `skerry explain service.spec.source`'

/** The API version of an object of Kubernetes. Null for anything else. */
function foreignVersion(document: unknown): string | null {
  if (typeof document !== 'object' || document === null || !('apiVersion' in document)) return null
  const { apiVersion } = document
  const isVersion = typeof apiVersion === 'string' && /^([a-z0-9.-]+\/)?v\d+((alpha|beta)\d+)?$/.test(apiVersion)
  return isVersion && !apiVersion.startsWith(`${API_VERSION.split('/')[0]}/`) ? apiVersion : null
}

/** A list, as `get -o yaml` prints it, stands for what is in it. */
function itemsOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null || !('items' in value) || 'metadata' in value) return [value]
  return Array.isArray(value.items) ? value.items : [value]
}

/** The parser knows where mappings and lists begin; a field's own line is looked for from there on. Where it is
 *  missing: the line of its parent. */
function lineOfField(
  document: unknown,
  segments: readonly PropertyKey[],
  documentLine: number,
  lines: readonly string[],
  lineOf: (node: unknown) => number,
): number {
  let node = document
  let line = documentLine
  for (const [depth, segment] of segments.entries()) {
    const child = typeof node === 'object' && node !== null ? (node as Record<PropertyKey, unknown>)[segment] : undefined
    const isLast = depth === segments.length - 1
    if (isLast && typeof segment === 'number' && typeof child === 'object' && child !== null) return lineOf(child)
    if (typeof child !== 'object' || child === null || isLast) {
      const exists = typeof node === 'object' && node !== null && Object.hasOwn(node, segment)
      return exists && typeof segment === 'string' ? (keyLine(lines, line, segment) ?? line) : line
    }
    node = child
    line = lineOf(child)
  }
  return line
}

function keyLine(lines: readonly string[], from: number, key: string): number | null {
  const pattern = new RegExp(`(^|[\\s{,-])["']?${key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}["']?\\s*:`)
  const index = lines.findIndex((line, i) => i >= from - 1 && pattern.test(line))
  return index < 0 ? null : index + 1
}
