// The manifests of the Kubernetes module, read as plain manifests: what kubectl reads of the same files is the oracle.
// It needs no cluster, only its binary.
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isManifestPath } from '../../server/render/manifest-path.ts'
import { readManifests } from '../../server/render/manifests.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { filesOfFolder } from '../support/helm-kit.ts'
import { findKubectl } from '../support/kubectl.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const FOLDER = join(ROOT, 'build/cluster/kubernetes')
const kubectl = findKubectl()
const there = kubectl !== null && existsSync(FOLDER)
if (!there) process.stderr.write('SKIPPED: no kubectl or no manifests (scripts/setup --cluster makes them)\n')
const MARK = 'skerry.test/mark'

/** kubectl annotates what it reads without knowing its kinds; the mark is taken off again. Null means that it refuses
 *  the file, or would not apply it, since configurations of tools have no name. */
function byKubectl(file: string): string[] | null {
  const run = Bun.spawnSync([kubectl ?? '', 'annotate', '--local', '-f', file, `${MARK}=1`, '-o', 'json'], { env: { HOME: tempDir() } })
  if (!run.success) return null
  const objects: unknown[] = JSON.parse(`[${run.stdout.toString().replaceAll('\n}\n{', '\n},\n{')}]`)
  if (objects.some((object) => (object as Annotated).metadata.name === undefined)) return null
  return objects.map((object) => canonicalJson(withoutMark(object))).sort()
}

interface Annotated {
  metadata: { name?: string; annotations?: Record<string, string> }
}
function withoutMark(object: unknown): unknown {
  const { metadata, ...rest } = object as Annotated
  const { [MARK]: _, ...annotations } = metadata.annotations ?? {}
  const { annotations: __, ...others } = metadata
  return { ...rest, metadata: Object.keys(annotations).length === 0 ? others : { ...others, annotations } }
}

/** An empty list of annotations is gone with the mark. */
const normal = (object: unknown): string => canonicalJson(withoutMark(JSON.parse(canonicalJson(object))))

describe.skipIf(!there)('RN1 RN7 the manifests of the Kubernetes module', () => {
  const files = there ? Object.entries(filesOfFolder(FOLDER)).filter(([path]) => isManifestPath(path)) : []
  test('are what kubectl reads, object by object', () => {
    expect(files.length).toBeGreaterThan(100)
    const different: Array<{ path: string; ours: unknown; theirs: unknown }> = []
    let objects = 0
    for (const [path, bytes] of files) {
      const { found, problems } = readManifests(new Map([[path, bytes]]))
      const ours = problems.length > 0 ? null : found.map(({ object }) => normal(object)).sort()
      const theirs = byKubectl(join(FOLDER, path))
      objects += ours?.length ?? 0
      if (JSON.stringify(ours) !== JSON.stringify(theirs)) different.push({ path, ours: ours ?? problems, theirs })
    }
    expect(different).toEqual([])
    expect(objects).toBeGreaterThan(200)
  }, 180_000)
})
