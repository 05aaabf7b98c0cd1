// The OCI images of scripts/image: other people's tools read them, a real runtime runs them as a Pod would, and the same files make the same bytes.
import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { packageVersion } from '../../scripts/binary-sandbox.ts'
import type { WrittenImage } from '../../scripts/images/oci.ts'
import { bundleOf, imageTool } from '../support/image-kit.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const NAMES = ['skerry-server', 'skerry-agent'] as const
const folder = tempDir()
let written: Record<string, WrittenImage>
const build = (into: string): Record<string, WrittenImage> => {
  const made = Bun.spawnSync([join(ROOT, 'scripts/image'), into, '--json'], { env: { ...process.env, SOURCE_DATE_EPOCH: '1790000000' } })
  if (!made.success) throw new Error(made.stderr.toString())
  return JSON.parse(made.stdout.toString()) as Record<string, WrittenImage>
}
beforeAll(() => {
  written = build(folder)
}, 180_000)

test.each([
  ['skerry-server', 150],
  ['skerry-agent', 65],
])('IG1 %s: at most %d MB compressed, with labels, and skopeo copies and checks every blob', (name, most) => {
  const layout = `oci:${join(folder, name)}:${packageVersion()}`
  const inspected = imageTool('skopeo', ['inspect', layout])
  expect(inspected.err).toBe('')
  expect(JSON.parse(inspected.out)).toMatchObject({
    Os: 'linux',
    Architecture: 'amd64',
    Labels: { 'org.opencontainers.image.title': name, 'org.opencontainers.image.licenses': 'Apache-2.0' },
  })
  expect(written[name]?.platforms.map(({ bytes }) => bytes / 1e6 <= most)).toEqual([true])
  const copied = imageTool('skopeo', ['--insecure-policy', 'copy', '--all', layout, `oci:${join(folder, `${name}-copy`)}:x`])
  expect(copied.code === 0 ? '' : copied.err).toBe('')
})

test.each(NAMES)(
  'IG2 %s runs by an OCI runtime as 65532 on a read-only root without capabilities',
  (name) => {
    const { user, args, run } = bundleOf(join(folder, name), packageVersion(), join(tempDir(), 'bundle'))
    expect([user.uid, user.gid, args.slice(1).join(' ')]).toEqual([
      65532,
      65532,
      name === 'skerry-server' ? 'server --data /data --listen 0.0.0.0:8080' : 'run --data /data',
    ])
    const version = run(['version', ...(name === 'skerry-server' ? ['--client'] : []), '-o', 'json'])
    expect(version.code === 0 ? '' : version.err).toBe('')
    expect(JSON.parse(version.out)).toMatchObject({ version: packageVersion() })
  },
  60_000,
)

test('IG3 the same files make the same images', () => {
  expect(build(tempDir())).toEqual(written)
}, 180_000)
