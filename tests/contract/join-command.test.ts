// `skerry cluster join-command`: what a shell makes of the printed command, by the helm of the cache and against the
// chart.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { chartFolder, podOf, renderChart } from '../support/chart-kit.ts'
import { runTestCli } from '../support/cli-run.ts'
import { HELM } from '../support/helm-kit.ts'
import { programsInShell } from '../support/shell-stubs.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const URL_OF_SERVER = 'https://skerry.example.com'
const PEM = "-----BEGIN CERTIFICATE-----\nMIIB,it's\\a=test\n-----END CERTIFICATE-----\n"
const joinCommand = async (...args: string[]) => {
  const ca = join(tempDir(), 'ca.pem')
  writeFileSync(ca, PEM)
  const env = { SKERRY_SERVER_CA: ca }
  const { code, out, err } = await runTestCli(
    admin,
    ['cluster', 'join-command', 'oslo', '--label', 'env=prod', '--url', URL_OF_SERVER, '-o', 'json', ...args],
    { env },
  )
  expect(code === 0 ? '' : err).toBe('')
  return JSON.parse(out) as { command: string; joinToken: string }
}
test('IK5 the form helm: the chart gets URL, name, token and authority as they are, and the token has the labels', async () => {
  const { command, joinToken } = await joinCommand('--chart', chartFolder('skerry-agent'), '--image', 'registry.example.com:5000/agent:1.2')
  const { args } = programsInShell(command)
  expect(args.slice(0, 3)).toEqual(['upgrade', '--install', 'skerry-agent'])
  const rendered = Bun.spawnSync([HELM['4'], 'template', ...args.slice(2).filter((arg) => arg !== '--create-namespace')])
  expect(rendered.stderr.toString()).toBe('')
  const objects = objectsOf(rendered.stdout.toString())
  const [container] = podOf(objects).spec.containers
  expect(container?.['image']).toBe('registry.example.com:5000/agent:1.2')
  expect(container?.env).toContainEqual({ name: 'SKERRY_SERVER', value: URL_OF_SERVER })
  expect(objects.find(({ kind }) => kind === 'ConfigMap')?.['data']).toEqual({ 'ca.crt': PEM })
  expect(objects.find(({ kind }) => kind === 'Secret')?.['stringData']).toEqual({ token: expect.stringMatching(/^skj\./) })
  const { items } = (await admin.call('GET', '/api/v1/join-tokens')).body as { items: Array<Record<string, unknown>> }
  expect(items).toMatchObject([{ id: joinToken, labels: { env: 'prod' }, state: 'usable' }])
})

const objectsOf = (text: string): K8sObject[] => parseYamlDocuments(text, { file: 'out' }).documents.map(({ value }) => value as K8sObject)

test('IK6 the form manifest: the same Pod, Secret and rights as the chart', async () => {
  const { command } = await joinCommand('--form', 'manifest', '--image', 'skerry-agent:0.1.0')
  const { args, input } = programsInShell(command)
  expect(args).toEqual(['apply', '--server-side', '-f', '-'])
  const printed = objectsOf(input)
  const secret = printed.find(({ kind }) => kind === 'Secret')?.['stringData'] as { token: string } | undefined
  const token = secret?.token ?? ''
  const values = { server: URL_OF_SERVER, cluster: 'oslo', joinToken: { value: token }, serverCa: { pem: PEM } }
  const chart = renderChart('skerry-agent', 'skerry-agent', { ...values, networkPolicy: { enabled: false } })
  const bare = ({ metadata: { labels: _, annotations: __, ...metadata }, ...rest }: K8sObject) => ({ ...rest, metadata })
  const wanted = chart.filter(({ kind }) => !['PodDisruptionBudget', 'Deployment'].includes(kind)).map(bare)
  const own = printed.filter(({ kind }) => !['Namespace', 'Deployment'].includes(kind)).map(bare)
  const byKind = (a: { kind: string }, b: { kind: string }) => (a.kind < b.kind ? -1 : 1)
  expect(own.toSorted(byKind)).toEqual(wanted.toSorted(byKind))
  expect(podOf(printed).spec).toEqual(podOf(chart).spec)
})

test('IK5 the form node: the agent of the node gets the same', async () => {
  const { args } = programsInShell((await joinCommand('--form', 'node')).command)
  expect(args).toEqual([
    ...['install', '--server', URL_OF_SERVER, '--cluster', 'oslo', '--join-token', expect.stringMatching(/^skj\./)],
    ...['--server-ca-pem', PEM.replace(/\n$/, '\n')],
  ])
})

test.each([
  [['cluster', 'join-command', 'Oslo']],
  [['cluster', 'join-command', 'oslo', '--url', 'http://skerry.example.com']],
  [['cluster', 'join-command', 'oslo', '--url', 'unix:/run/skerry.sock']],
  [['cluster', 'join-command', 'oslo', '--form', 'yaml']],
])('IK5 %j is refused before a token is made', async (argv) => {
  expect((await runTestCli(admin, argv)).code).toBe(2)
  expect((await admin.call('GET', '/api/v1/join-tokens')).body).toMatchObject({ items: [] })
})

test('IK5 the chart that is named by default is in the repository', async () => {
  const help = await runTestCli(admin, ['cluster', 'join-command', '--help'])
  const [, folder = ''] = /"(charts\/[\w-]+)"/.exec(help.out) ?? []
  expect(await Bun.file(join(ROOT, folder, 'Chart.yaml')).exists()).toBe(true)
})
