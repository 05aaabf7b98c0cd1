// The names in a kustomization and in the files of its plugins: files, folders, charts. Pure: values in, names with
// their places out.
import { type ParsedYaml, parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import { TextPlaces } from '../text-places.ts'
import { isInline } from './paths.ts'

/** `either`: a file, or a folder with a kustomization. `plugin`: the same, whose documents name files again. `chart`: a
 *  folder of a chart. */
export type NeedKind = 'either' | 'folder' | 'file' | 'plugin' | 'chart'

/** A file or folder that a kustomization names. */
export interface Need {
  kind: NeedKind
  /** As written, relative to the folder of the kustomization. */
  path: string
  /** `resources`, `patches[].path`: for messages. */
  field: string
  line: number
  /** Kustomize does without it, or says better what is missing. */
  optional: boolean
}

/** A request of a kustomization that is always refused here. */
export interface Refused {
  line: number
  message: string
}

type Mapping = Record<string, unknown>
const isMapping = (value: unknown): value is Mapping => typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const mappingsOf = (value: unknown): Mapping[] => listOf(value).filter(isMapping)
const textsOf = (value: unknown): string[] => listOf(value).filter((item) => typeof item === 'string')

/** Members of a kustomization that name things one by one. */
const LISTS: ReadonlyArray<readonly [field: string, kind: NeedKind]> = [
  ['resources', 'either'],
  ['bases', 'folder'],
  ['components', 'folder'],
  ['crds', 'file'],
  ['configurations', 'file'],
  ['generators', 'plugin'],
  ['transformers', 'plugin'],
  ['validators', 'plugin'],
  ['patchesStrategicMerge', 'file'],
]
const WITH_PATH = ['patches', 'patchesJson6902', 'replacements']
const PLUGINS = ['generators', 'transformers', 'validators']
const GENERATORS = ['configMapGenerator', 'secretGenerator']
const CHARTS = ['helmCharts', 'helmChartInflationGenerator']
const FIELDS = [...LISTS.map(([field]) => field), ...WITH_PATH, ...GENERATORS, ...CHARTS, 'openapi', 'helmGlobals']
/** Members of mappings below those fields that name a file or a folder. */
const FILE_MEMBERS = ['path', 'paths', 'files', 'envs', 'env', 'valuesFile', 'additionalValuesFiles', 'values', 'chartHome']

export interface Named {
  needs: Need[]
  charts: Chart[]
  refused: Refused[]
}
export interface Chart {
  name: string
  version: string | null
  home: string
  line: number
}

/** `text`: the same kustomization as written, for lines. */
export function namedBy(kustomization: Mapping, parsed: ParsedYaml, text: string): Named {
  const lines = new Lines(text)
  const needs: Need[] = []
  const need = (kind: NeedKind, path: string, field: string, line: number, optional = false) =>
    needs.push({ kind, path, field, line, optional })
  for (const [field, kind] of LISTS) {
    for (const path of textsOf(kustomization[field])) {
      const mayBeInline = kind === 'plugin' || field === 'patchesStrategicMerge'
      if (!mayBeInline || !isInline(path)) need(kind, path, field, lines.of(field, path))
    }
  }
  for (const field of WITH_PATH)
    for (const item of mappingsOf(kustomization[field]))
      if (typeof item['path'] === 'string' && item['path'] !== '') need('file', item['path'], `${field}[].path`, parsed.lineOf(item))
  for (const field of GENERATORS)
    for (const item of mappingsOf(kustomization[field]))
      for (const [member, path] of generatorFiles(item)) need('file', path, `${field}[].${member}`, lines.after(parsed.lineOf(item), path))
  const { openapi } = kustomization
  if (isMapping(openapi) && typeof openapi['path'] === 'string') need('file', openapi['path'], 'openapi.path', parsed.lineOf(openapi))
  const inline = PLUGINS.flatMap((field) => textsOf(kustomization[field]).filter(isInline)).map((plugin) => namedInline(plugin, lines))
  const charts = [...chartsOf(kustomization, parsed), ...inline.flatMap((plugin) => plugin.charts)]
  needs.push(...inline.flatMap((plugin) => plugin.needs))
  for (const item of CHARTS.flatMap((field) => mappingsOf(kustomization[field]))) needs.push(...valuesFilesOf(item, parsed.lineOf(item)))
  return { needs, charts, refused: [...otherCapitals(kustomization, parsed), ...inline.flatMap(({ refused }) => refused)] }
}

/**
 * Go accepts names of fields in any capitals, and `ſ` for an s: the value under such a name would be used without a
 * check.
 */
function otherCapitals(kustomization: Mapping, parsed: ParsedYaml): Refused[] {
  const below = [...WITH_PATH, ...GENERATORS, ...CHARTS].flatMap((field) => mappingsOf(kustomization[field]))
  const single = [kustomization['openapi'], kustomization['helmGlobals']].filter(isMapping)
  return [
    ...misspelt(kustomization, FIELDS, parsed),
    ...[...below, ...single].flatMap((item) => misspelt(item, [...FILE_MEMBERS, 'name', 'chartName', 'version'], parsed)),
  ]
}

function misspelt(mapping: Mapping, known: readonly string[], parsed: ParsedYaml): Refused[] {
  return Object.keys(mapping).flatMap((name) => {
    const meant = known.find((one) => folded(one) === folded(name))
    return meant === undefined || meant === name
      ? []
      : [{ line: parsed.lineOf(mapping), message: `field ${name} is misspelled; write ${meant}` }]
  })
}

const folded = (name: string): string => name.toUpperCase().toLowerCase()

/** `name=path` or a path; a path may hold no `=`. */
function generatorFiles(item: Mapping): Array<[member: string, path: string]> {
  const files = textsOf(item['files']).map((file): [string, string] => ['files', file.slice(file.indexOf('=') + 1)])
  const envs = textsOf(item['envs']).map((file): [string, string] => ['envs', file])
  const env = typeof item['env'] === 'string' ? [['env', item['env']] as [string, string]] : []
  return [...files, ...envs, ...env].filter(([, path]) => path !== '')
}

function chartsOf(kustomization: Mapping, parsed: ParsedYaml): Chart[] {
  const { helmGlobals } = kustomization
  const home = isMapping(helmGlobals) && typeof helmGlobals['chartHome'] === 'string' ? helmGlobals['chartHome'] : 'charts'
  const charts = mappingsOf(kustomization['helmCharts']).map((item) => chartOf(item, 'name', home, parsed.lineOf(item)))
  const legacy = mappingsOf(kustomization['helmChartInflationGenerator']).map((item) =>
    chartOf(item, 'chartName', typeof item['chartHome'] === 'string' ? item['chartHome'] : 'charts', parsed.lineOf(item)),
  )
  return [...charts, ...legacy]
}

function chartOf(item: Mapping, member: string, home: string, line: number): Chart {
  const { version } = item
  const named = item[member]
  return { name: typeof named === 'string' ? named : '', version: typeof version === 'string' ? version : null, home, line }
}

const valuesFilesOf = (item: Mapping, line: number): Need[] =>
  [...textsOf([item['valuesFile'], item['values']]), ...textsOf(item['additionalValuesFiles'])].map((path) => ({
    ...{ kind: 'file' as const, path, field: 'helmCharts[].valuesFile', line, optional: false },
  }))

/**
 * Reads the documents of a file of `generators`, `transformers` or `validators`: they configure built-in plugins, which
 * name files from the kustomization's folder.
 */
export function namedByPlugins(parsed: ParsedYaml): Named {
  const needs: Need[] = []
  const refused: Refused[] = []
  const charts: Chart[] = []
  for (const { value, line } of parsed.documents) {
    if (!isMapping(value)) continue
    const message = refusedPlugin(value)
    if (message !== null) refused.push({ line, message })
    if (value['kind'] === 'HelmChartInflationGenerator') {
      const home = typeof value['chartHome'] === 'string' ? value['chartHome'] : 'charts'
      charts.push(chartOf(value, typeof value['name'] === 'string' ? 'name' : 'chartName', home, line))
    }
    for (const path of filesIn(value, 0)) needs.push({ kind: 'file', path, field: 'path', line, optional: true })
  }
  return { needs, charts, refused }
}

const FILES_OF_PLUGINS = new Set(FILE_MEMBERS.filter((member) => member !== 'values' && member !== 'chartHome').map(folded))

function filesIn(value: unknown, depth: number): string[] {
  if (depth > 10 || typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([member, inside]) => {
    if (!FILES_OF_PLUGINS.has(folded(member))) return filesIn(inside, depth + 1)
    const texts = typeof inside === 'string' ? [inside] : textsOf(inside)
    return texts
      .filter((text) => !text.includes('\n'))
      .map((text) => (folded(member) === 'files' ? text.slice(text.indexOf('=') + 1) : text))
  })
}

const FUNCTION_MARK = 'config.kubernetes.io/function'

/** KU4: what runs programs of its own. */
function refusedPlugin(document: Mapping): string | null {
  const { metadata, kind, apiVersion } = document
  const annotations = isMapping(metadata) && isMapping(metadata['annotations']) ? metadata['annotations'] : {}
  if (Object.hasOwn(annotations, FUNCTION_MARK))
    return `${String(kind)} is a KRM function, which runs a program or a container; use a patch, a replacement or a built-in transformer instead`
  if (typeof apiVersion === 'string' && apiVersion !== 'builtin' && typeof kind === 'string' && !BUILTINS.test(kind))
    return `${kind} is a plugin, which runs a program; use a patch, a replacement or a built-in transformer instead`
  return null
}
const BUILTINS = /(Transformer|Generator|Inflation|Resources)$/

function namedInline(plugin: string, lines: Lines): Named {
  const line = lines.after(1, plugin.trim().split('\n')[0] ?? '')
  const { needs, charts, refused } = namedByPlugins(parseYamlDocuments(plugin, { file: '' }))
  const at = <T>(found: readonly T[]): T[] => found.map((one) => ({ ...one, line }))
  return { needs: at(needs), charts: at(charts), refused: at(refused) }
}

/** Scalars have no line of their own: the first one at or after their field that holds them. Those of one field come
 *  one after the other, so that each is looked for from the one before. */
class Lines {
  private readonly places: TextPlaces
  private readonly fields = new Map<string, number>()
  /** By the line where a search began: where the last one ended. */
  private readonly found = new Map<number, number>()

  constructor(text: string) {
    this.places = new TextPlaces(text)
  }

  of(field: string, text: string): number {
    const line = this.fields.get(field) ?? this.lineOf(field)
    this.fields.set(field, line)
    return this.after(line, text)
  }

  private lineOf(field: string): number {
    const { text } = this.places
    const at = text.startsWith(`${field}:`) ? 0 : text.indexOf(`\n${field}:`) + 1
    if (at > 0 || text.startsWith(`${field}:`)) return this.places.positionAt(at).line
    const quoted = text.indexOf(`"${field}":`)
    return quoted < 0 ? 1 : this.places.positionAt(quoted).line
  }

  after(line: number, text: string): number {
    const start = this.places.startOfLine(line)
    const from = this.found.get(line) ?? start
    const next = this.places.find(text, from)
    const at = next < 0 && from > start ? this.places.find(text, start) : next
    if (at < 0) return line
    this.found.set(line, at + text.length)
    return this.places.positionAt(at).line
  }
}
