// The OCI images of scripts/image: other people's tools read them, a real runtime runs them as a Pod would, and the
// same files make the same bytes.
import { beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageVersion } from '../../scripts/binary-sandbox.ts'
import type { WrittenImage } from '../../scripts/images/oci.ts'
import { freePort } from '../../scripts/local-cluster/child-process.ts'
import { createGitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { bundleOf, imageTool, type Runtime } from '../support/image-kit.ts'
import { eventually, startKubeCluster } from '../support/kube-cluster.ts'
import { configMapYaml, repositoryYaml, serviceYaml } from '../support/scenario.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const NAMES = ['skerry-server', 'skerry-agent'] as const
const folder = tempDir()
let written: Record<string, WrittenImage>
const build = (into: string): Record<string, WrittenImage> => {
  const made = Bun.spawnSync([join(ROOT, 'scripts/image'), into, '--arm64', '--json'], {
    env: { ...process.env, SOURCE_DATE_EPOCH: '1790000000' },
  })
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
  expect(written[name]?.platforms.map(({ architecture, bytes }) => [architecture, bytes / 1e6 <= most])).toEqual([
    ['amd64', true],
    ['arm64', true],
  ])
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

/** crun refuses a machine that mounts both versions of control groups. */
const RUNTIMES: readonly Runtime[] = existsSync('/sys/fs/cgroup/unified') ? ['runc'] : ['runc', 'crun']

test.each(RUNTIMES)(
  'IG2 by %s, as in a Pod, the server serves, and the agent joins, applies, and starts again without its join token',
  async (runtime) => {
    const undo: Array<() => unknown> = []
    try {
      const dir = tempDir()
      const git = await createGitServer({ dir: join(tempDir(), 'git') })
      undo.push(() => git.stop())
      await git.commit({ 'web/a.yaml': configMapYaml('a', { v: '1' }) }, 'begin')
      const cluster = await startKubeCluster({ name: runtime, controllers: false })
      undo.push(() => cluster.stop())
      const url = `http://127.0.0.1:${freePort()}`
      const bundle = (name: string) => bundleOf(join(folder, name), packageVersion(), join(dir, name), runtime)
      const flags = [
        '--listen',
        url.slice('http://'.length),
        '--admin-token-file',
        '/data/admin.token',
        '--source-addresses',
        '127.0.0.0/8',
      ]
      const server = bundle('skerry-server').start(['server', '--data', '/data/skerry', '--render-sandbox', 'limits', ...flags])
      undo.push(() => server.stop())
      const tokenFile = join(dir, 'skerry-server/volume/admin.token')
      await eventually('the server serves', async () => (await fetch(`${url}/readyz`)).ok && existsSync(tokenFile), 60_000).catch(() => {
        throw new Error(server.log())
      })
      const env = { SKERRY_SERVER: url, SKERRY_TOKEN: readFileSync(tokenFile, 'utf8').trim(), PATH: '/usr/bin', HOME: dir }
      const skerry = (args: string[], stdin = '') => {
        const ran = Bun.spawnSync([join(ROOT, 'dist/skerry'), ...args], { env, stdin: Buffer.from(stdin) })
        expect(ran.exitCode === 0 ? '' : ran.stderr.toString()).toBe('')
        return ran.stdout.toString()
      }
      skerry(['apply', '-f', '-'], repositoryYaml('apps', git.url, '1s') + serviceYaml({ name: 'web' }))
      const { token } = JSON.parse(skerry(['join-token', 'create', '-o', 'json'])) as { token: string }
      const [join_, kubeconfig] = [join(dir, 'join'), join(dir, 'kubeconfig')]
      mkdirSync(join_)
      writeFileSync(join(join_, 'token'), token)
      writeFileSync(kubeconfig, readFileSync(cluster.kubeconfigPath))
      const run = ['run', '--data', '/data/agent', '--server', url, '--cluster', 'oslo', '--kubeconfig', '/etc/skerry/kubeconfig']
      const mounts = { '/etc/skerry/kubeconfig': kubeconfig, '/etc/skerry/join': join_ }
      const image = bundle('skerry-agent')
      const start = () => image.start([...run, '--join-token-file', '/etc/skerry/join/token'], mounts)
      const value = () => cluster.kubectl(['get', 'configmap', 'a', '-n', 'web', '-o', 'jsonpath={.data.v}']).catch(() => '')
      const first = start()
      await eventually('the object', async () => (await value()) === '1', 60_000).catch(() => {
        throw new Error(first.log())
      })
      await first.stop()
      rmSync(join(join_, 'token'))
      const second = start()
      undo.push(() => second.stop())
      await git.commit({ 'web/a.yaml': configMapYaml('a', { v: '2' }) }, 'change')
      await eventually('the change', async () => (await value()) === '2', 60_000).catch(() => {
        throw new Error(second.log())
      })
    } finally {
      for (const step of undo.reverse()) await step()
    }
  },
  240_000,
)

test('IG3 the same files make the same images', () => {
  expect(build(tempDir())).toEqual(written)
}, 180_000)
