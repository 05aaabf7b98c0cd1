// What README.md, MIGRATION.md and the guides show is what the product takes: resources that can be applied, fields that there are, with values that they take.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { explainField } from '../../server/cli/field-reference.ts'
import { parseResources } from '../../server/cli/resource-files.ts'
import { specProblems } from '../../server/http/resource-checks.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { serviceSchema } from '../../shared/model/resources.ts'

const text = (name: string): string => readFileSync(join(import.meta.dir, '../..', name), 'utf8')
const yamlIn = (name: string) => [...text(name).matchAll(/^```yaml\n(.*?)^```/gms)].map(([, block = '']) => block)
const yamlBlocks = yamlIn('README.md')
const guideBlocks = yamlIn('docs/how-to/health-rules.md')
const MINIMAL = { source: { repository: 'r', path: 'p' }, targets: { selector: {} } }
const serviceOf = (spec: object) => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'Service',
  metadata: { name: 'a' },
  spec: { ...MINIMAL, ...spec },
})

test('AP4 the README has resources, and parts of a Service', () => expect(yamlBlocks.length).toBeGreaterThan(2))

test.each([...yamlBlocks, ...guideBlocks])('AP4 resources of README.md and of the guides can be applied: %#', async (block) => {
  const [part] = block.startsWith('spec:') ? parseYamlDocuments(block, { file: 'README.md' }).documents : []
  const whole = part === undefined ? block : JSON.stringify(serviceOf((part.value as { spec: object }).spec))
  const { read, problems } = parseResources([{ name: 'README.md', text: whole }])
  expect(problems).toEqual([])
  expect(read.length).toBeGreaterThan(0)
  expect((await Promise.all(read.map(({ resource }) => specProblems(resource, checkPatchesHere)))).flat()).toEqual([])
})

const OF_SERVICE =
  /^(source|sources|render|sync|config|configFrom|overrides|targets|namespace|deletionPolicy|ignore|health|dependsOn|protect)(\.|$)/
const OF_REPOSITORY = /^(git|helm|oci|poll)(\.|$)/
/** What stands in backquotes in the column of ours. */
const ours = text('MIGRATION.md')
  .split('\n')
  .filter((line) => /^\| [^-]/.test(line))
  .flatMap((line) => [...(line.split(' | ')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, span = '']) => span))
const fields = [...new Set(ours.map((span) => span.replace(/: .*$/, '')))].flatMap((field) =>
  OF_SERVICE.test(field) ? [`service.spec.${field}`] : OF_REPOSITORY.test(field) ? [`repository.spec.${field}`] : [],
)

test.each(fields)('CL17 the field %s, which MIGRATION.md names, is there', (field) => {
  expect(() => explainField({ stdout: { write: () => true } }, field, {})).not.toThrow()
})

const settings = ours.filter((span) => OF_SERVICE.test(span) && /^[\w.]+: ./.test(span))
test.each(settings)('AP4 the setting %s, which MIGRATION.md names, is taken', (setting) => {
  const [, field = '', value = ''] = /^([\w.]+): (.*)$/.exec(setting) ?? []
  const nested = field.split('.').reduceRight<string>((inner, name) => `{${name}: ${inner}}`, value)
  const [document] = parseYamlDocuments(nested, { file: 'MIGRATION.md' }).documents
  expect(serviceSchema.safeParse(serviceOf(document?.value as object)).error?.issues ?? []).toEqual([])
})

test('AP4 fields and settings were found', () => expect([fields.length > 40, settings.length > 6]).toEqual([true, true]))
