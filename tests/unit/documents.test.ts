// README.md and the pages of docs against the product: resources can be applied, fields exist, commands and flags
// exist, links lead somewhere.
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parsePolicy } from '../../agent/policy-file.ts'
import { oidcSettingsSchema } from '../../server/access/oidc/settings.ts'
import { explainField } from '../../server/cli/field-reference.ts'
import { parseResources } from '../../server/cli/resource-files.ts'
import { specProblems } from '../../server/http/resource-checks.ts'
import { keyServiceSchema } from '../../server/key-service.ts'
import { readExecList } from '../../server/render/exec/list.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { readApplyOptions } from '../../shared/kube/apply-options.ts'
import { orderOf } from '../../shared/kube/waves.ts'
import { API_VERSION, serviceSchema } from '../../shared/model/resources.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { commandProblem, ownCommand } from '../support/command-lines.ts'
import { anchorsOf, blocksOf, inlineCodeOf, linksOf, markdownFiles, userPages } from '../support/markdown.ts'
import { commandsIn } from '../support/shell-words.ts'
import { ROOT, repositoryFiles } from '../support/source-files.ts'

const MINIMAL = { source: { repository: 'r', path: 'p' }, targets: { selector: {} } }
const serviceOf = (spec: object) => ({
  apiVersion: API_VERSION,
  kind: 'Service',
  metadata: { name: 'a' },
  spec: { ...MINIMAL, ...('sources' in spec ? { source: undefined } : {}), ...spec },
})

const blocks = userPages.flatMap(blocksOf)
const yamlBlocks = blocks.filter(({ info }) => info.split(' ')[0] === 'yaml')

interface Manifest {
  apiVersion?: string
  kind?: string
  metadata?: { name?: string; annotations?: Record<string, string> }
}

async function resourceProblems(name: string, text: string): Promise<string[]> {
  const { read, problems } = parseResources([{ name, text }])
  const inSpec = (await Promise.all(read.map(({ resource }) => specProblems(resource, checkPatchesHere)))).flat()
  const told = [...problems, ...inSpec].map(({ path, message }) => `${path}: ${message}`)
  return read.length === 0 && told.length === 0 ? ['holds no resource'] : told
}

/** Of an object of Kubernetes: its annotations for Skerry mean something. */
function manifestProblems({ apiVersion, kind, metadata }: Manifest): string[] {
  if (!apiVersion || !kind || !metadata?.name) return ['an object needs apiVersion, kind and metadata.name']
  const order = orderOf(metadata.annotations)
  const options = readApplyOptions(metadata.annotations)
  return [...(order.kind === 'malformed' ? [order.message] : []), ...(options.kind === 'wrong' ? [options.message] : [])]
}

/** Values of a chart that its values.yaml does not have; what its schema says of them is shown by
 *  tests/contract/charts.test.ts. */
function unknownValues(chart: string, values: unknown): string[] {
  const path = `charts/${chart}/values.yaml`
  const text = repositoryFiles.find((file) => file.path === path)?.text ?? ''
  const known = parseYamlDocuments(text, { file: path }).documents[0]?.value
  const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
  const missing = (given: unknown, has: unknown, at: string): string[] =>
    !isMap(given) || !isMap(has) || Object.keys(has).length === 0
      ? []
      : Object.entries(given).flatMap(([key, value]) => (key in has ? missing(value, has[key], `${at}.${key}`) : [`${at}.${key}`]))
  return missing(values, known, chart)
}

test('AP4 pages have resources, parts of a Service, objects and lists of renderers', () => {
  expect(yamlBlocks.length).toBeGreaterThan(20)
})

test.each(yamlBlocks.map((block) => [block.place, block] as const))('AP4 the YAML at %s is taken', async (place, { info, text }) => {
  const { documents, problems } = parseYamlDocuments(text, { file: place })
  expect(problems).toEqual([])
  const [first] = documents
  if (info === 'yaml prometheus') expect(first?.value).toHaveProperty('scrape_configs')
  else if (info === 'yaml sign-in') expect(oidcSettingsSchema.safeParse(first?.value)).toMatchObject({ success: true })
  else if (info === 'yaml key-service') expect(keyServiceSchema.safeParse(first?.value)).toMatchObject({ success: true })
  else if (info === 'yaml litestream') expect(first?.value).toHaveProperty('dbs')
  else if (info === 'yaml sops') expect(first?.value).toHaveProperty('creation_rules')
  else if (info === 'yaml renderers') expect(readExecList(first?.value, place)).toHaveProperty('entries')
  else if (info === 'yaml policy') expect(parsePolicy(text, place)).toMatchObject({ kind: 'policy' })
  else if (info.startsWith('yaml values ')) expect(unknownValues(info.split(' ')[2] ?? '', first?.value)).toEqual([])
  else if (text.startsWith('spec:')) {
    const { spec } = (first?.value ?? {}) as { spec?: object }
    expect(await resourceProblems(place, JSON.stringify(serviceOf(spec ?? {})))).toEqual([])
  } else if (documents.every(({ value }) => (value as Manifest).apiVersion === API_VERSION)) {
    expect(await resourceProblems(place, text)).toEqual([])
  } else expect(documents.flatMap(({ value }) => manifestProblems(value as Manifest))).toEqual([])
})

test('CL8 commands in the shell blocks of pages exist, with their flags and arguments', () => {
  const shown = blocks
    .filter(({ info }) => info === 'sh')
    .flatMap(({ place, text }) => commandsIn(text).map((words) => ({ place, words, own: ownCommand(words) })))
  const wrong = shown.flatMap(({ place, words, own }) => {
    const problem = own === null ? null : commandProblem(own.program, own.rest)
    return problem === null ? [] : [`${place}: ${words.join(' ')}: ${problem}`]
  })
  expect(wrong).toEqual([])
  expect(shown.filter(({ own }) => own !== null).length).toBeGreaterThan(50)
})

test('CL8 commands that pages name in running text exist, with their flags', () => {
  const named = userPages
    .filter(({ path }) => !path.startsWith('docs/decisions/'))
    .flatMap(inlineCodeOf)
    .flatMap(({ place, code }) => commandsIn(code).flatMap((words) => ({ place, words, own: ownCommand(words) })))
  const wrong = named.flatMap(({ place, words, own }) => {
    const problem = own === null ? null : commandProblem(own.program, own.rest, { partly: true })
    return problem === null ? [] : [`${place}: ${words.join(' ')}: ${problem}`]
  })
  expect(wrong).toEqual([])
  expect(named.filter(({ own }) => own !== null).length).toBeGreaterThan(30)
})

test.each([
  ['skerry get podz --nope', 'skerry get has no flag --nope'],
  ['skerry gett pods', 'skerry takes no argument gett'],
  ['skerry server-key rotate mac now', 'skerry server-key rotate takes no argument now'],
  ['skerry describe', 'skerry describe needs <kind>'],
  ['skerry server --data', 'skerry server --data needs a value'],
  ['A=1 dist/skerry-agent status -o xml', 'skerry-agent status -o takes text, json, yaml, not xml'],
  ['TOKEN=$(skerry join-token create --uses 2) # skerry nope', null],
  ["skerry get objects --status-selector 'health in (A,B)' | skerry apply -f -", null],
])('CL8 of %p a check of documents says %p', (line, expected) => {
  const told = commandsIn(line).flatMap((words) => {
    const own = ownCommand(words)
    return own === null ? [] : [commandProblem(own.program, own.rest)]
  })
  expect(told.find((problem) => problem !== null) ?? null).toBe(expected)
  expect(told.length).toBeGreaterThan(0)
})

test('AP10 routes that pages name are routes of the API', async () => {
  const admin = await createTestAdmin()
  const routes = new Set(admin.app.routes.map(({ path }) => path.replace(/:(\w+)/g, '{$1}')))
  await admin.store.close()
  const named = userPages.flatMap(({ path, text }) => [...text.matchAll(/\/api\/v1\/[\w/.{}-]*[\w}]/g)].map(([route]) => ({ path, route })))
  expect(named.filter(({ route }) => !routes.has(route)).map(({ path, route }) => `${path}: ${route}`)).toEqual([])
  expect(named.length).toBeGreaterThan(5)
})

test('every relative link of a Markdown file leads to a file and a heading', () => {
  const pages = new Map(markdownFiles.map((file) => [file.path, file]))
  const broken = markdownFiles.flatMap((file) =>
    linksOf(file).flatMap(({ place, target }) => {
      if (/^[a-z]+:/.test(target)) return []
      const [to = '', anchor] = target.split('#')
      const path = to === '' ? file.path : posix.join(posix.dirname(file.path), to)
      if (!existsSync(join(ROOT, path))) return [`${place}: ${target}: there is no ${path}`]
      const page = pages.get(path)
      const isThere = anchor === undefined || (page !== undefined && anchorsOf(page).has(anchor))
      return isThere ? [] : [`${place}: ${target}: ${path} has no heading ${anchor}`]
    }),
  )
  expect(broken).toEqual([])
})

test('every source file that ARCHITECTURE.md and the decisions name exists', () => {
  const paths = repositoryFiles.map(({ path }) => path)
  const named = markdownFiles
    .filter(({ path }) => path === 'ARCHITECTURE.md' || path.startsWith('docs/decisions/'))
    .flatMap(inlineCodeOf)
    .filter(({ code }) => /^[\w./-]+\.ts$/.test(code))
  const gone = named.filter(({ code }) => !paths.some((path) => path === code || path.endsWith(`/${code}`)))
  expect(gone.map(({ place, code }) => `${place}: ${code}`)).toEqual([])
  expect(named.length).toBeGreaterThan(50)
})

const OF_SERVICE =
  /^(source|sources|render|sync|config|configFrom|overrides|targets|namespace|deletionPolicy|ignore|health|dependsOn|protect)(\.|$)/
const OF_REPOSITORY = /^(git|helm|oci|poll)(\.|$)/
const MIGRATE = 'docs/how-to/migrate.md'
/** The inline code in the second column of its tables. */
const ours = (userPages.find(({ path }) => path === MIGRATE)?.text ?? '')
  .split('\n')
  .filter((line) => /^\| [^-]/.test(line))
  .flatMap((line) => [...(line.split(' | ')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, span = '']) => span))
const fields = [...new Set(ours.map((span) => span.replace(/: .*$/, '')))].flatMap((field) =>
  OF_SERVICE.test(field) ? [`service.spec.${field}`] : OF_REPOSITORY.test(field) ? [`repository.spec.${field}`] : [],
)

test.each(fields)(`CL17 the field %s, which ${MIGRATE} names, exists`, (field) => {
  expect(() => explainField({ stdout: { write: () => true } }, field, {})).not.toThrow()
})

const settings = ours.filter((span) => OF_SERVICE.test(span) && /^[\w.]+: ./.test(span))
test.each(settings)(`AP4 the setting %s, which ${MIGRATE} names, is taken`, (setting) => {
  const [, field = '', value = ''] = /^([\w.]+): (.*)$/.exec(setting) ?? []
  const nested = field.split('.').reduceRight<string>((inner, name) => `{${name}: ${inner}}`, value)
  const [document] = parseYamlDocuments(nested, { file: MIGRATE }).documents
  expect(serviceSchema.safeParse(serviceOf(document?.value as object)).error?.issues ?? []).toEqual([])
})

test('AP4 fields and settings were found', () => expect([fields.length > 40, settings.length > 6]).toEqual([true, true]))
