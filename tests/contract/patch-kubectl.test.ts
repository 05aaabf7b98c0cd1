// The oracle of our patches is kubectl itself: `kubectl patch --local` needs no cluster.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { applyJsonPatch, type JsonPatchOp } from '../../server/render/patch/json.ts'
import { type JsonMap, mergePatch, strategicMerge } from '../../server/render/patch/merge.ts'
import { patchTypeOf } from '../../server/render/patch/schema.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { findKubectl } from '../support/kubectl.ts'
import { PATCH_CASES, type PatchCase } from '../support/patch-cases.ts'

const kubectl = findKubectl()
if (kubectl === null) process.stderr.write('patch-kubectl: no kubectl; run scripts/setup --cluster\n')
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'skerry-patch-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** What kubectl makes of each object of a file. Null means that it refuses. */
async function asked(objects: string, patch: unknown, type: PatchCase['type'], name: string): Promise<JsonMap[] | null> {
  const [file, patchFile] = [join(folder, `${name}.yaml`), join(folder, `${name}.json`)]
  writeFileSync(file, objects)
  writeFileSync(patchFile, JSON.stringify(patch))
  const argv = [kubectl ?? '', 'patch', '--local', '-f', file, '-o', 'json', '--type', type, '--patch-file', patchFile]
  const run = Bun.spawn(argv, { stdout: 'pipe', stderr: 'ignore', env: { HOME: folder } })
  const out = await new Response(run.stdout).text()
  if ((await run.exited) !== 0) return null
  return out
    .split(/^(?=\{$)/m)
    .filter((text) => text.trim() !== '')
    .map((text) => JSON.parse(text))
}

function ours(object: JsonMap, patch: unknown, type: PatchCase['type']): JsonMap {
  if (type === 'json') return applyJsonPatch(object, patch as JsonPatchOp[])
  if (type === 'merge') return mergePatch(object, patch as JsonMap) as JsonMap
  const found = patchTypeOf(String(object['apiVersion']), String(object['kind']))
  if (found === null) throw new Error('no built-in kind')
  return strategicMerge(object, patch as JsonMap, found)
}
const read = (text: string): JsonMap[] => parseYamlDocuments(text, { file: 'object' }).documents.map(({ value }) => value as JsonMap)

describe.skipIf(kubectl === null)('against kubectl patch --local', () => {
  test('there are enough cases', () => expect(PATCH_CASES.length).toBeGreaterThanOrEqual(60))

  test.concurrent.each(PATCH_CASES.map((one, index) => [one.type, one.name, one, index] as const))(
    'PT1 PT2 PT3 %s: %s',
    async (_, __, { object, patch, type, lenient, strict }, index) => {
      const [expected] = (await asked(object, patch, type, `case-${index}`)) ?? []
      const [given] = read(object)
      const before = canonicalJson([given, patch])
      const run = () => ours(given ?? {}, patch, type)
      if (lenient) expect([expected, run()]).toEqual([undefined, expect.anything()])
      else if (strict) {
        expect(expected).toBeDefined()
        expect(run).toThrow()
      } else if (expected === undefined) expect(run).toThrow()
      else expect(canonicalJson(run())).toBe(canonicalJson(expected))
      expect(canonicalJson([given, patch])).toBe(before) // nothing that was given is changed
    },
    20_000,
  )

  test('PT1 random pods under random patches, a hundred objects to a patch', async () => {
    const names = fc.constantFrom('a', 'b', 'c', 'd')
    const env = fc.uniqueArray(fc.record({ name: names, value: names }), { selector: ({ name }) => name, maxLength: 4 })
    const container = fc.record(
      { name: names, image: names, args: fc.array(names, { maxLength: 2 }), env, ports: fc.uniqueArray(fc.record({ containerPort: fc.constantFrom(1, 2, 3) }), { selector: ({ containerPort }) => containerPort }) }, // biome-ignore format: short
      { requiredKeys: ['name'] },
    )
    const containers = fc.uniqueArray(container, { selector: ({ name }) => name, maxLength: 4 })
    const volumes = fc.uniqueArray(fc.record({ name: names, emptyDir: fc.constant({}) }, { requiredKeys: ['name'] }), { selector: ({ name }) => name }) // biome-ignore format: short
    const directive = fc.constantFrom('delete', 'none', 'none', 'none')
    const patched = fc
      .uniqueArray(fc.record({ item: container, directive, nulled: fc.boolean() }), { selector: ({ item }) => item.name, maxLength: 4 })
      .map((items) =>
        items.map(({ item, directive, nulled }) =>
          directive === 'delete' ? { name: item.name, $patch: 'delete' } : { ...item, ...(nulled ? { image: null } : {}) },
        ),
      )
    const finalizers = fc.uniqueArray(fc.constantFrom('x/a', 'x/b', 'x/c', 'x/d'), { maxLength: 4 })
    const spec = fc.record({ containers, volumes, nodeSelector: fc.dictionary(names, names) }, { requiredKeys: [] })
    const pods = fc.array(fc.record({ spec, finalizers }), { minLength: 100, maxLength: 100 })
    const patches = fc.record({ containers: patched, volumes, nodeSelector: fc.dictionary(names, fc.option(names)) }, { requiredKeys: [] })
    const [objects = []] = fc.sample(pods, { numRuns: 1, seed: 7 })
    const documents = objects.map((one, index) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `p${index}`, finalizers: one.finalizers },
      spec: one.spec,
    }))
    const text = documents.map((one) => JSON.stringify(one)).join('\n---\n')
    let compared = 0
    const metadata = fc.record({ finalizers, '$deleteFromPrimitiveList/finalizers': fc.uniqueArray(fc.constantFrom('x/a', 'x/e')) }, { requiredKeys: [] }) // biome-ignore format: short
    for (const [index, one] of fc
      .sample(fc.record({ spec: patches, metadata, ordered: fc.boolean() }), { numRuns: 20, seed: 8 })
      .entries()) {
      const { ordered, ...given } = one
      const patch = JSON.parse(JSON.stringify(given))
      // Go goes through a patch in no order: what takes away and what adds the same shall not meet.
      const gone: string[] = patch.metadata['$deleteFromPrimitiveList/finalizers'] ?? []
      if (patch.metadata.finalizers) patch.metadata.finalizers = patch.metadata.finalizers.filter((name: string) => !gone.includes(name))
      const kept = (patch.spec.containers ?? []).filter((item: { $patch?: string }) => item.$patch === undefined)
      if (ordered && kept.length > 0) patch.spec['$setElementOrder/containers'] = [...kept, { name: 'd' }, { name: 'a' }].map(({ name }) => ({ name })).filter(({ name }, at, all) => all.findIndex((other) => other.name === name) === at) // biome-ignore format: short
      const expected = await asked(text, patch, 'strategic', `random-${index}`)
      if (expected === null) throw new Error(`kubectl refuses ${JSON.stringify(patch)}`)
      for (const [at, document] of documents.entries()) {
        const given = JSON.parse(JSON.stringify(document))
        expect([at, JSON.stringify(patch), canonicalJson(ours(given, patch, 'strategic'))]).toEqual([at, JSON.stringify(patch), canonicalJson(expected[at])]) // biome-ignore format: short
        compared++
      }
    }
    expect(compared).toBe(2_000)
  }, 60_000)
})
