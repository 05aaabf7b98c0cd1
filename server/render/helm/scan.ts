// Finds in the text of a chart the capabilities of the target cluster that it names, and functions that give something
// else at each render or nothing at all here. It reads the templates that can be reached, as far as names are literal;
// where they are not, everything counts.
import { TextPlaces } from '../text-places.ts'
import { type TemplateToken, templateTokens } from './lexer.ts'

/** The reason why a use is reported. */
export type UseKind = 'random' | 'time' | 'lookup' | 'dns' | 'missing' | 'install'
/** A use of a function that means something else here (HM7). */
export interface Use {
  name: string
  kind: UseKind
  file: string
  line: number
  column: number
}
/** A literal question about an API version. */
export interface Literal {
  api: string
  file: string
  /** The offset of the whole expression, `.Capabilities.APIVersions.Has "x"`, in the text of the file. */
  at: number
  end: number
}
export interface ChartScan {
  uses: Use[]
  apis: Literal[]
  /** The first look at API versions whose name cannot be read: all of them count. */
  anyApi: { file: string; line: number; column: number } | null
  kubeVersion: boolean
  releaseNamespace: { file: string; line: number; column: number } | null
}

/** By path from the chart's folder. */
export interface ScannedFile {
  path: string
  text: string
  /** `template`: rendered by itself; `partial`: only what it defines counts; `values`: texts that `tpl` may render;
   *  `notes`: rendered, and then dropped. */
  kind: 'template' | 'partial' | 'values' | 'notes'
}

const KINDS: Readonly<Record<string, UseKind>> = {
  ...Object.fromEntries(
    [
      'randAlphaNum',
      'randAlpha',
      'randNumeric',
      'randAscii',
      'randBytes',
      'randInt',
      'shuffle',
      'uuidv4',
      'htpasswd',
      'bcrypt',
      'encryptAES',
    ]
      .concat([
        'genPrivateKey',
        'genCA',
        'genCAWithKey',
        'genSelfSignedCert',
        'genSelfSignedCertWithKey',
        'genSignedCert',
        'genSignedCertWithKey',
      ])
      .map((name) => [name, 'random' as const]),
  ),
  now: 'time',
  ago: 'time',
  lookup: 'lookup',
  getHostByName: 'dns',
  env: 'missing',
  expandenv: 'missing',
}

/** The findings in one template (a file, or a `define` of a file) itself, without the templates that it includes. */
interface Found extends ChartScan {
  includes: Set<string>
  /** It includes what cannot be read. */
  includesAny: boolean
  usesTpl: boolean
}

const nothing = (): Found => ({
  uses: [],
  apis: [],
  anyApi: null,
  kubeVersion: false,
  releaseNamespace: null,
  includes: new Set(),
  includesAny: false,
  usesTpl: false,
})

/** Only text that a template can reach counts: a helper without an include asks for nothing. */
export function scanChart(files: readonly ScannedFile[]): ChartScan {
  const defined = new Map<string, Found[]>()
  const roots: Found[] = []
  const tplTexts: Found[] = []
  for (const file of files) {
    const { own, defines } = scanFile(file)
    for (const [name, found] of defines) {
      const same = defined.get(name)
      if (same === undefined) defined.set(name, [found])
      else same.push(found)
    }
    if (file.kind === 'values') tplTexts.push(own)
    else if (file.kind !== 'partial') roots.push(own)
  }
  return merged(reachable(roots, tplTexts, defined))
}

function reachable(roots: readonly Found[], tplTexts: readonly Found[], defined: ReadonlyMap<string, readonly Found[]>): Found[] {
  const reached = new Set<Found>()
  const waiting = [...roots]
  // Each list counts once, however many include it.
  const taken = new Set<readonly Found[]>()
  const take = (list: readonly Found[] | undefined) => {
    if (list === undefined || taken.has(list)) return
    taken.add(list)
    for (const found of list) waiting.push(found)
  }
  const all = [...defined.values()].flat()
  for (let found = waiting.pop(); found !== undefined; found = waiting.pop()) {
    if (reached.has(found)) continue
    reached.add(found)
    if (found.usesTpl) take(tplTexts)
    if (found.includesAny) take(all)
    for (const name of found.includes) take(defined.get(name))
  }
  return [...reached]
}

function merged(parts: readonly Found[]): ChartScan {
  const first = <Place extends { file: string; line: number }>(places: Array<Place | null>): Place | null =>
    places.filter((place) => place !== null).sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1))[0] ?? null
  return {
    uses: parts
      .flatMap(({ uses }) => uses)
      .sort((a, b) => (a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1)),
    apis: parts.flatMap(({ apis }) => apis),
    anyApi: first(parts.map(({ anyApi }) => anyApi)),
    kubeVersion: parts.some(({ kubeVersion }) => kubeVersion),
    releaseNamespace: first(parts.map(({ releaseNamespace }) => releaseNamespace)),
  }
}

const OPENS_BLOCK = new Set(['if', 'range', 'with', 'define', 'block'])

interface PlacedFile extends ScannedFile {
  places: TextPlaces
}

function scanFile(scanned: ScannedFile): { own: Found; defines: Array<[string, Found]> } {
  const file: PlacedFile = { ...scanned, places: new TextPlaces(scanned.text) }
  const own = nothing()
  const defines: Array<[string, Found]> = []
  const open: Found[] = [] // of each block that is not ended, what was looked at before it
  let current = own
  const tokens = templateTokens(file.text)
  for (const [index, token] of tokens.entries()) {
    const word = token.kind === 'name' && isFirstOfAction(tokens, index) ? token.text : ''
    if (OPENS_BLOCK.has(word)) open.push(current)
    if (word === 'end') current = open.pop() ?? own
    if (word === 'define') {
      current = nothing()
      defines.push([tokens[index + 1]?.text ?? '', current])
    }
    look(file, tokens, index, current)
  }
  return { own, defines }
}

/** `{{- if`: the dash is a mark of its own. */
function isFirstOfAction(tokens: readonly TemplateToken[], index: number): boolean {
  const before = tokens[index - 1]
  return before?.kind === 'open' || (before?.text === '-' && tokens[index - 2]?.kind === 'open')
}

function look(file: PlacedFile, tokens: readonly TemplateToken[], index: number, found: Found): void {
  const token = tokens[index]
  if (token === undefined) return
  if (token.kind === 'name') lookAtName(file, tokens, index, token, found)
  else if (token.kind === 'chain') lookAtChain(file, tokens, index, token, found)
  // `index . "Capabilities"`, `get $ "Capabilities"`.
  else if (token.kind === 'text' && token.text.includes('Capabilities')) takeAll(file, token, found)
  else if (token.kind === 'text' && token.text.includes('{{')) lookInside(file, token, found)
}

/** A template in a text: `tpl "{{ .Capabilities… }}" .` */
function lookInside(file: PlacedFile, token: TemplateToken, found: Found): void {
  const inner = templateTokens(token.text)
  if (inner.some(({ kind, text }) => kind === 'chain' && text.includes('Capabilities'))) takeAll(file, token, found)
  for (const { kind, text } of inner) if (kind === 'name') noteUse(file, text, token, found)
}

function noteUse(file: PlacedFile, name: string, { at }: TemplateToken, found: Found): void {
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
  if (kind !== undefined && file.kind !== 'notes') found.uses.push({ name, kind, file: file.path, ...file.places.positionAt(at) })
}

function lookAtName(file: PlacedFile, tokens: readonly TemplateToken[], index: number, token: TemplateToken, found: Found): void {
  noteUse(file, token.text, token, found)
  if (token.text === 'tpl') found.usesTpl = true
  if (token.text !== 'include' && token.text !== 'template' && token.text !== 'block') return
  const next = tokens[index + 1]
  if (next?.kind === 'text') found.includes.add(next.text)
  else if (!namesOwnFile(tokens, index + 1)) found.includesAny = true
}

/** Maximum number of read tokens of an include. */
const INCLUDE_TOKENS_MAX = 50

/** `include (print $.Template.BasePath "/configmap.yaml") .`: the file of a template, which is rendered anyway. */
function namesOwnFile(tokens: readonly TemplateToken[], from: number): boolean {
  for (const { kind, text } of tokens.slice(from, from + INCLUDE_TOKENS_MAX)) {
    if (kind === 'close' || text === ')') return false
    if (kind === 'chain' && text.endsWith('.Template.BasePath')) return true
  }
  return false
}

function takeAll(file: PlacedFile, { at }: TemplateToken, found: Found): void {
  found.kubeVersion = true
  found.anyApi ??= { file: file.path, ...file.places.positionAt(at) }
}

function lookAtChain(file: PlacedFile, tokens: readonly TemplateToken[], index: number, token: TemplateToken, found: Found): void {
  const names = token.text.split('.').slice(1)
  const place = () => ({ file: file.path, ...file.places.positionAt(token.at) })
  const release = names.indexOf('Release')
  const member = release < 0 ? undefined : names[release + 1]
  if (member === 'Namespace' && file.kind !== 'notes') found.releaseNamespace ??= place()
  if ((member === 'IsInstall' || member === 'IsUpgrade') && file.kind !== 'notes')
    found.uses.push({ name: `.Release.${member}`, kind: 'install', ...place() })
  const from = names.indexOf('Capabilities')
  if (from < 0) return
  const [what, method] = names.slice(from + 1)
  if (what === 'KubeVersion') found.kubeVersion = true
  else if (what === 'APIVersions') {
    const argument = tokens[index + 1]
    if (method === 'Has' && argument?.kind === 'text' && argument.text !== '' && !isPipedInto(tokens, index))
      found.apis.push({ api: argument.text, file: file.path, at: token.at, end: argument.end })
    else found.anyApi ??= place()
  } else if (what !== 'HelmVersion') takeAll(file, token, found)
}

const isPipedInto = (tokens: readonly TemplateToken[], index: number): boolean => tokens[index - 1]?.text === '|'
