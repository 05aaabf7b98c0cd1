// The oracle of our kustomizations is kustomize itself, in a plain checkout with everything in it; and kubectl, whose
// kustomize many people use.
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { filesOfFolder, HELM } from '../support/helm-kit.ts'
import { findKubectl } from '../support/kubectl.ts'
import {
  bareBuild,
  KUSTOMIZATIONS,
  KUSTOMIZE,
  kustomizationNames,
  kustomized,
  objectsOf,
  renderedObjects,
} from '../support/kustomize-kit.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { ROOT } from '../support/source-files.ts'

const sandbox = realSandbox()
/** Files that a fixture has and a render must not look at. */
const UNUSED: Readonly<Record<string, string[]>> = { plain: ['build/unused.yaml'] }
const rootOf = (name: string): string => (name === 'deep' ? 'build/prod/eu' : 'build')
const kubectl = findKubectl()
if (kubectl === null) throw new Error('half of the oracle is kubectl, which does not exist: run scripts/setup --cluster')
const NAMES = kustomizationNames()

describe('KU1 the same objects as kustomize build', () => {
  test('there are enough of them', () => expect(NAMES.length).toBeGreaterThanOrEqual(25))
  test.each(NAMES)('%s', async (name) => {
    const folder = join(KUSTOMIZATIONS, name)
    const files = filesOfFolder(folder)
    const run = await kustomized({ files, root: rootOf(name), sandbox, spec: { kustomize: { helmCharts: name === 'helm-charts' } } })
    const ours = renderedObjects(run.result)
    const helm = ['--enable-helm', '--helm-command', HELM['4']]
    expect(ours).toEqual(objectsOf(bareBuild([KUSTOMIZE, 'build', ...helm, join(folder, rootOf(name))])))
    expect(ours.length).toBeGreaterThan(0)
    expect(ours).toEqual(objectsOf(bareBuild([kubectl, 'kustomize', ...helm, join(folder, rootOf(name))])))
    // KU2: exactly what it names was looked at.
    const unused = UNUSED[name] ?? []
    expect(run.files).toEqual(
      name === 'helm-charts'
        ? expect.anything()
        : Object.keys(files)
            .filter((path) => !unused.includes(path))
            .sort(),
    )
  })
})

const KWOK = join(ROOT, 'build/cluster/kwok')
describe('KU1 the kustomizations of the kwok module', () => {
  const all = filesOfFolder(KWOK)
  const folders = readdirSync(KWOK, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('kustomization.yaml'))
    .map((path) => path.slice(0, -'/kustomization.yaml'.length))
  let same = 0
  test.each(folders.sort())('%s', async (folder) => {
    const run = Bun.spawnSync([KUSTOMIZE, 'build', join(KWOK, folder)], { env: { HOME: '/tmp' } })
    const { result } = await kustomized({ files: all, root: folder, sandbox })
    // Some are made for a release's own steps and name what is not in the module: kustomize refuses them, and so do we.
    if (!run.success) {
      expect(result.kind).toBe('failed')
      return
    }
    expect(renderedObjects(result)).toEqual(objectsOf(run.stdout.toString()))
    same += 1
  })
  test('most of them render', () => expect(same).toBeGreaterThanOrEqual(8))
})
