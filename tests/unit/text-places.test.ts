// Lines and columns of many places in one text, and the renderers that ask for them: never the square of what somebody
// wrote.
import { expect, test } from 'bun:test'
import { problemsOf, warningsOf } from '../../server/render/kustomize/errors.ts'
import { namedBy } from '../../server/render/kustomize/fields.ts'
import { SEARCHED_MAX, TextPlaces } from '../../server/render/text-places.ts'
import { importClosure } from '../../server/render/typescript/closure.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { naming } from '../support/naming.ts'
import { processorMs } from '../support/processor-time.ts'
import { memoryTree } from '../support/render-job.ts'

/** Milliseconds, far above what is needed on a busy machine and far below what each of these took. */
const QUICK = 2_000

test('lines and columns are those of the text, at every place', () => {
  for (const text of ['', 'a', '\n', 'a\n\nbc\n', 'ab\r\nc']) {
    const places = new TextPlaces(text)
    const lines = text.split('\n')
    for (let at = 0; at <= text.length; at++) {
      const before = text.slice(0, at).split('\n')
      expect(places.positionAt(at)).toEqual({ line: before.length, column: (before.at(-1) ?? '').length + 1 })
    }
    for (const [index, line] of lines.entries()) expect(places.lineText(index + 1)).toBe(line)
    expect(places.lineText(lines.length + 1)).toBe('')
  }
})

test('searches have a bound together, and then find nothing', () => {
  const places = new TextPlaces(`${'x'.repeat(SEARCHED_MAX / 4)}y`)
  for (let round = 0; round < 4; round++) expect(places.find('y', 0)).toBe(SEARCHED_MAX / 4)
  expect(places.find('y', 0)).toBe(-1)
})

const namedLines = (text: string): number[] => {
  const parsed = parseYamlDocuments(text, { file: 'k' })
  return namedBy(parsed.documents[0]?.value as Record<string, unknown>, parsed, text).needs.map(({ line }) => line)
}

test('KU3 what a kustomization names has its line: in order, twice, in one line, and where it is not written out', () => {
  expect(namedLines('# a.yaml\nresources:\n- a.yaml\n- b.yaml\n- a.yaml\ncrds: [a.yaml, "\\x63.yaml"]\n')).toEqual([3, 4, 5, 6, 6])
  expect(namedLines('{"resources": [\n"a.yaml",\n"b.yaml"]}\n')).toEqual([2, 3])
  const generator = 'configMapGenerator:\n- name: a\n  envs: [e.env]\n  files:\n  - x.txt\n  - k=y.txt\n'
  expect(namedLines(generator).sort()).toEqual([3, 5, 6])
})

test('KU2 a kustomization of a hundred thousand names, in lines or in one, is read at once', async () => {
  const names = Array.from({ length: 100_000 }, (_, at) => `f${at}.yaml`)
  const escaped = names.map((_, at) => `"\\x66${at}"`)
  for (const [text, last] of [
    [`resources:\n- ${names.join('\n- ')}\n`, 100_001],
    [`resources: [${names.join(', ')}]\n`, 1],
    [`resources: [${escaped.join(', ')}]\n`, 1],
    [`configMapGenerator:\n- name: a\n  files:\n  - ${names.join('\n  - ')}\n`, 100_003],
  ] as const) {
    const parsed = parseYamlDocuments(text, { file: 'k' })
    const value = parsed.documents[0]?.value as Record<string, unknown>
    let needs: Array<{ line: number }> = []
    expect(
      await processorMs(() => {
        needs = namedBy(value, parsed, text).needs
      }),
    ).toBeLessThan(QUICK)
    expect(needs.at(-1)?.line).toBe(last)
  }
})

test('KU8 nothing that kustomize says takes the square of its length, and what is cut tells no values', async () => {
  const built = { files: new Map<string, Uint8Array>(), root: '' }
  const said = {
    ids: `invalid Kustomization: json: unknown field "${'a.[noGrp]'.repeat(7_000)}"`,
    folders: `${'a/'.repeat(30_000)}source-tree`,
    patches: 'x [patch: '.repeat(6_000),
    literals: 'literal sources ['.repeat(3_500),
    configurations: 'with config: `'.repeat(4_500),
    missing: `${'/a'.repeat(30_000)}: no such file or directory`,
  }
  for (const [name, text] of Object.entries(said)) {
    expect([name, (await processorMs(() => problemsOf(`Error: ${text}`, built))) < QUICK / 4]).toEqual([name, true])
    expect([name, (await processorMs(() => warningsOf(text, built))) < QUICK / 4]).toEqual([name, true])
  }
  const secret = 'hunter2 '.repeat(1_000)
  for (const text of [
    `a with config: \`${secret}`,
    `a with config: \`${secret}\` b`,
    `a [patch: ${secret}] b`,
    `a [patch: ${secret}`,
    `a literal sources [${secret}]: b`,
    `a literal sources [${secret}`,
    `a from generator &{${secret}`,
    `invalid literal source ${secret}`,
  ]) {
    const [problem] = problemsOf(`Error: ${text}`, built)
    expect(problem?.message).not.toContain('hunter2')
  }
})

test('TS3 a script of 50,000 wrong imports is told at once, each with its place and line', async () => {
  const imports = Array.from({ length: 50_000 }, (_, at) => `import './${at}'`)
  const tree = memoryTree({ 'main.ts': `${imports.join('\n')}\n` })
  const closed = { ...tree, file: async (path: string) => (path === 'main.ts' ? tree.file(path) : null) }
  const { problems } = await importClosure(closed, 'main.ts')
  expect(problems.at(-1)).toEqual({
    path: 'main.ts:50000:8',
    message: naming('./49999'),
    excerpt: "import './49999'",
  })
})

test('TS8 YAML that one of the scripts imports as text is left as it is: also beside others in one line', async () => {
  const script = `import a from './a.yaml' with { type: 'json' }; import b from "./sub/b.yml" with { type: 'text' }\nconst c = await ${'import'}('./c.yaml', {\n with: {} })\n`
  const texts = { 'main.ts': script, 'a.yaml': 'x: yes\n', 'sub/b.yml': 'x: yes\n', 'c.yaml': 'x: yes\n' }
  const { files, asText } = await importClosure(memoryTree(texts), 'main.ts')
  expect([...asText].sort()).toEqual(['a.yaml', 'b.yml'])
  expect(new TextDecoder().decode(files.get('sub/b.yml'))).toBe('x: yes\n')
  expect(new TextDecoder().decode(files.get('c.yaml'))).toBe('{"x":true}\n')
})
