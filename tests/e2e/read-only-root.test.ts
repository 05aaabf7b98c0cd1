// The compiled server and agent do their whole work where a container would put them: a read-only root of just their
// files, uid 65532, no /dev, no /tmp, no environment, nothing writable but the data folder.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { LIBC_FILES, sandboxCommand } from '../../scripts/binary-sandbox.ts'
import { type ChildProcess, freePort, startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { createGitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import { startKubeCluster } from '../support/kube-cluster.ts'
import { testDatabase } from '../support/postgres.ts'
import { configMapYaml, repositoryYaml, serviceYaml } from '../support/scenario.ts'

setDefaultTimeout(120_000)
const ROOT = resolve(import.meta.dir, '../..')
const undo: Array<() => unknown> = []
afterAll(async () => {
  for (const step of undo.reverse()) await step()
})

test('BI1 server and agent take a commit to a cluster from a read-only root', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-sandbox-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const dataDir = (name: string) => {
    mkdirSync(join(folder, name))
    chmodSync(join(folder, name), 0o777) // the uid inside is not ours
    return join(folder, name)
  }
  const start = (binary: string, data: string, args: string[], files: Record<string, string> = {}): ChildProcess => {
    const inside = `/usr/bin/${binary}`
    const options = {
      files: { ...LIBC_FILES, [inside]: join(ROOT, 'dist', binary), ...files },
      dataDir: data,
      command: [inside, ...args],
      network: true,
    }
    const child = startChild(sandboxCommand(options), join(folder, `${binary}.log`))
    undo.push(() => child.kill())
    return child
  }

  const git = await createGitServer({ dir: mkdtempSync(join(folder, 'git-')) })
  undo.push(() => git.stop())
  await git.commit(
    Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`web/c${n}.yaml`, configMapYaml(`c${n}`, { value: 'x'.repeat(2_000) })])),
    'begin',
  )
  const cluster = await startKubeCluster({ name: 'sandbox', controllers: false })
  undo.push(() => cluster.stop())
  chmodSync(cluster.kubeconfigPath, 0o644)

  const port = freePort()
  const url = `http://127.0.0.1:${port}`
  const data = dataDir('server')
  const serverFlags = [
    'server',
    '--data',
    '/data',
    '--listen',
    `127.0.0.1:${port}`,
    '--admin-token-file',
    '/data/admin.token',
    '--source-addresses',
    '127.0.0.0/8',
  ]
  if (postgresIsWanted()) {
    writeFileSync(join(data, 'store-url'), await testDatabase())
    serverFlags.push('--store-file', '/data/store-url')
  }
  const server = start('skerry', data, serverFlags)
  await waitUntil('server in the sandbox', async () => (await fetch(`${url}/readyz`)).ok, { child: server })
  await waitUntil(
    'admin token',
    async () => existsSync(join(data, 'admin.token')) && readFileSync(join(data, 'admin.token'), 'utf8').endsWith('\n'),
    { child: server },
  )
  const token = readFileSync(join(data, 'admin.token'), 'utf8').trim()
  // The file is written before the store has the token.
  const headers = { authorization: `Bearer ${token}` }
  await waitUntil('valid admin token', async () => (await fetch(`${url}/api/v1/services`, { headers })).ok, { child: server })
  const env = { SKERRY_SERVER: url, SKERRY_TOKEN: token }
  const skerry = (args: string[], stdin = '') => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([join(ROOT, 'dist/skerry'), ...args], { env, stdin: Buffer.from(stdin) })
    expect(exitCode === 0 ? '' : stderr.toString()).toBe('')
    return stdout.toString()
  }
  skerry(['apply', '-f', '-'], repositoryYaml('apps', git.url) + serviceYaml({ name: 'web' }))
  const { token: joinToken } = JSON.parse(skerry(['join-token', 'create', '-o', 'json'])) as { token: string }

  const flags = [
    'run',
    '--data',
    '/data',
    '--server',
    url,
    '--cluster',
    'sandbox',
    '--join-token',
    joinToken,
    '--kubeconfig',
    '/kubeconfig',
  ]
  const agent = start('skerry-agent', dataDir('agent'), flags, { '/kubeconfig': cluster.kubeconfigPath })
  await waitUntil('the service in the sandbox', async () => /^web +Synced +Healthy +1\/1/m.test(skerry(['get', 'services'])), {
    child: agent,
  })
  const names = await cluster.kubectl(['get', 'configmaps', '-n', 'web', '-o', 'name'])
  expect(names.match(/^configmap\/c\d+$/gm)).toHaveLength(300)
})
