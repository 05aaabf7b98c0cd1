// Which files a TypeScript entry needs: what it imports, and what that imports, through the recorded tree. The texts
// are read for their imports and never run here.
import { isBuiltin } from 'node:module'
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { pathSegments, type SourceFile, type SourceTree } from '../../sources/source.ts'
import { TextPlaces } from '../text-places.ts'
import { treePath } from '../tree-path.ts'
import { decodeUtf8 } from '../utf8.ts'

const SCRIPT = /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx)$/
const DATA = /\.(json|yaml|yml|txt|toml)$/
/** Whether it is run; other files are data that scripts may read. */
export const isScript = (path: string): boolean => SCRIPT.test(path)
const YAML = /\.ya?ml$/
const YAML_LENGTH_MAX = 16 * 1024 * 1024
const SCRIPT_BYTES_MAX = 1024 * 1024
/** The limit of one service, packages included. */
export const SCRIPTS_MAX = 5_000

export interface Closure {
  /** By path from the tree's root. */
  files: Map<string, Uint8Array>
  /** The author's own, for warnings. */
  scripts: Map<string, string>
  /** Names of YAML files that one of the scripts imports as text. */
  asText: Set<string>
  problems: Problem[]
  warnings: Problem[]
}

/** `entry` and all that it imports, directly or not, by path from the tree's root; what is wrong is in `problems`, all
 *  at once. */
export async function importClosure(tree: SourceTree, entry: string): Promise<Closure> {
  const found: Closure = { files: new Map(), scripts: new Map(), asText: new Set(), problems: [], warnings: [] }
  const packages = new Set<string>()
  const queue = [entry]
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (found.files.has(path)) continue
    if (found.files.size >= SCRIPTS_MAX) {
      found.problems.push({ path: entry, message: `imports more than ${SCRIPTS_MAX} files` })
      break
    }
    const file = await tree.file(path)
    if (file === null) {
      found.problems.push({ path, message: 'file not found; set another one with `render.typescript.entry`' })
      continue
    }
    found.files.set(path, YAML.test(path) ? yamlAsJson(path, file.bytes, found) : file.bytes)
    if (isScript(path)) queue.push(...(await importsOf(tree, path, file, packages, found)))
  }
  return found
}

/**
 * YAML with the meaning of kubectl, written as JSON, which is YAML too: Bun reads `0644` and `yes` differently, and
 * accepts a duplicate key. An import as text gets the text.
 */
function yamlAsJson(path: string, bytes: Uint8Array, found: Closure): Uint8Array {
  const text = decodeUtf8(bytes)
  if (text === null || found.asText.has(path.slice(path.lastIndexOf('/') + 1))) return bytes
  const { documents, problems, warnings } = parseYamlDocuments(text, { file: path })
  found.problems.push(...problems)
  found.warnings.push(...warnings)
  let length = 0
  const counted = (_: string, value: unknown) => {
    length += typeof value === 'string' ? value.length : 8
    if (length > YAML_LENGTH_MAX) throw new RangeError()
    return value
  }
  try {
    return new TextEncoder().encode(documents.map(({ value }) => `${JSON.stringify(value, counted)}\n`).join('---\n'))
  } catch {
    found.problems.push({ path, message: `more than ${YAML_LENGTH_MAX} characters, with aliases expanded` })
    return bytes
  }
}

const AS_TEXT = /\.ya?ml(?=['"]\s{0,100},?\s{0,100}(?:with|assert|\{)[^)\n]{0,500}['"](?:text|file)['"])/g
const NAME_MAX = 255

/** `from './a.yaml' with { type: 'text' }`: names without their folders. */
function yamlAsText(script: string): string[] {
  return [...script.matchAll(AS_TEXT)].map(({ 0: ending, index }) => {
    const end = index + ending.length
    return /[^/'"\n]*$/.exec(script.slice(Math.max(0, end - NAME_MAX), end))?.[0] ?? ''
  })
}

async function importsOf(tree: SourceTree, path: string, { bytes }: SourceFile, packages: Set<string>, found: Closure): Promise<string[]> {
  const text = bytes.byteLength > SCRIPT_BYTES_MAX ? null : decodeUtf8(bytes)
  if (text === null) {
    const message = bytes.byteLength > SCRIPT_BYTES_MAX ? `has more than ${SCRIPT_BYTES_MAX} bytes` : 'is not UTF-8 text'
    found.problems.push({ path, message })
    return []
  }
  found.scripts.set(path, text)
  for (const name of yamlAsText(text)) found.asText.add(name)
  const read = scan(path, text)
  found.problems.push(...read.problems)
  const next: string[] = []
  const places = new ImportPlaces(text)
  for (const specifier of read.specifiers) {
    if (isBuiltin(specifier) || /^(bun(:.*)?|node:.*)$/.test(specifier)) continue
    const resolved = await resolveImport(tree, path, specifier, packages, found)
    if (typeof resolved === 'string') next.push(resolved)
    else if (resolved !== null) found.problems.push({ ...places.of(path, specifier), message: resolved.wrong })
  }
  return next
}

type Resolved = string | { wrong: string } | null

/** Null if it is a package, whose files are in already. */
async function resolveImport(tree: SourceTree, from: string, specifier: string, packages: Set<string>, found: Closure): Promise<Resolved> {
  if (/^\.\.?(\/|$)/.test(specifier)) {
    const target = treePath(folderOf(from), specifier)
    if (target === null) return { wrong: `imports ${specifier}, which is outside the source` }
    for (const candidate of candidatesOf(target)) if ((await tree.file(candidate)) !== null) return candidate
    return { wrong: `imports ${specifier}, which does not exist` }
  }
  if (/^[a-z]+:|^\//i.test(specifier))
    return { wrong: `imports ${specifier}: only files of the source and packages in its node_modules can be imported` }
  const missing = await addPackage(tree, from, packageName(specifier), packages, found)
  return missing
    ? {
        wrong: `imports the package ${packageName(specifier)}, which is missing in the node_modules folders of the source: commit it, or copy the code`,
      }
    : null
}

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

const packageName = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** Adds the package of the nearest node_modules folder above `from`, with the packages that it depends on. Answers true
 *  if no such folder has it. */
async function addPackage(tree: SourceTree, from: string, name: string, packages: Set<string>, found: Closure): Promise<boolean> {
  const above = pathSegments(from).slice(0, -1)
  for (let depth = above.length; depth >= 0; depth -= 1) {
    const folder = [...above.slice(0, depth), 'node_modules', name].join('/')
    if (packages.has(folder)) return false
    if ((await tree.id(folder)) === null) continue
    packages.add(folder)
    const files = await tree.files(folder, () => true)
    for (const [path, { bytes }] of files) found.files.set(path, bytes)
    for (const needed of dependenciesOf(files.get(`${folder}/package.json`)))
      await addPackage(tree, `${folder}/package.json`, needed, packages, found)
    return false
  }
  return true
}

function dependenciesOf(manifest: SourceFile | undefined): string[] {
  try {
    const { dependencies = {}, peerDependencies = {} } = JSON.parse(decodeUtf8(manifest?.bytes ?? new Uint8Array()) ?? '{}')
    return Object.keys({ ...dependencies, ...peerDependencies })
  } catch {
    return []
  }
}

function candidatesOf(target: string): string[] {
  if (DATA.test(target)) return [target]
  const endings = ['.ts', '.tsx', '.mts', '.js', '.mjs', '.json']
  const written = isScript(target) ? [target, target.replace(/\.([mc]?)js(x?)$/, '.$1ts$2')] : []
  return [...new Set([...written, ...endings.map((ending) => target + ending), `${target}/index.ts`, `${target}/index.js`])]
}

function scan(path: string, text: string): { specifiers: string[]; problems: Problem[] } {
  const loader = /\.(tsx|jsx)$/.test(path) ? 'tsx' : /\.(m|c)?js$/.test(path) ? 'js' : 'ts'
  try {
    const imports = new Bun.Transpiler({ loader }).scanImports(text)
    return { specifiers: [...new Set(imports.map((one) => one.path))], problems: [] }
  } catch (error) {
    return { specifiers: [], problems: syntaxProblems(error, path) }
  }
}

function syntaxProblems(error: unknown, path: string): Problem[] {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.flatMap((one: unknown) => syntaxProblems(one, path)).slice(0, 20)
  const { message, position } = Object(error) as { message?: string; position?: { line: number; column: number; lineText: string } | null }
  const place = position == null ? path : `${path}:${position.line}:${position.column}`
  const excerpt = position == null ? {} : { excerpt: position.lineText.slice(0, 200) }
  return [{ path: place, message: message ?? String(error), ...excerpt }]
}

/** Where a file is imported from; imports come in the order of the text, so that each is looked for from the one
 *  before. */
class ImportPlaces {
  private readonly places: TextPlaces
  private last = 0

  constructor(text: string) {
    this.places = new TextPlaces(text)
  }

  of(path: string, specifier: string): { path: string; excerpt: string } {
    const { line, column } = this.places.positionAt(this.find(specifier))
    return { path: `${path}:${line}:${column}`, excerpt: this.places.lineText(line).slice(0, 200) }
  }

  private find(specifier: string): number {
    for (const from of new Set([this.last, 0]))
      for (let at = this.places.find(specifier, from); at >= 0; at = this.places.find(specifier, at + 1)) {
        const quote = this.places.text.charAt(at - 1)
        if (!QUOTES.includes(quote) || this.places.text.charAt(at + specifier.length) !== quote) continue
        this.last = at
        return at - 1
      }
    return 0
  }
}
const QUOTES = ["'", '"', '`']
