// `skerry audit`: list, export, and verification with and without a server.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditLine } from '../../shared/model/audit.ts'
import { createTestAdmin, repositoryDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { tempDir } from '../support/temp-dir.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  for (const name of ['a', 'b', 'c']) await admin.call('PUT', `/api/v1/projects/default/repositories/${name}`, repositoryDoc(name))
})
afterEach(() => admin.store.close())

const run = (...argv: string[]) => runTestCli(admin, ['audit', ...argv])
const exported = async (): Promise<AuditLine[]> =>
  (await run('export')).out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
function fileOf(lines: readonly unknown[]): string {
  const path = join(tempDir(), 'audit.jsonl')
  writeFileSync(path, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'))
  return path
}

test('AU6 the list shows who did what, newest first', async () => {
  const { code, out } = await run('list', '--kind', 'Repository', '--limit', '2', '--no-headers')
  expect(code).toBe(0)
  expect(out.split('\n').map((line) => line.split(/ +/).slice(2, 6))).toEqual([
    ['token/admin', 'create', 'Repository/c', 'default'],
    ['token/admin', 'create', 'Repository/b', 'default'],
    [],
  ])
  expect(await run('list', '--since', 'yesterday')).toMatchObject({ code: 2 })
})

test('AU1 --reason of a command that writes is recorded', async () => {
  const reason = 'Störung 7'
  expect(await runTestCli(admin, ['join-token', 'create', '--reason', reason])).toMatchObject({ code: 0 })
  const { items } = await admin.store.audit.list({ limit: 1 })
  expect(items).toMatchObject([{ verb: 'create', kind: 'JoinToken', reason }])
})

test('AU4 an export is verified without a server, and so is the log of one', async () => {
  const lines = await exported()
  const online = await run('verify')
  expect(online).toMatchObject({ code: 0 })
  const end = /^end: (.+)$/m.exec(online.out)?.[1] ?? ''
  const key = /^signed by: (.+)$/m.exec(online.out)?.[1] ?? ''
  expect(await run('verify', fileOf(lines), '--expect', end, '--server-key', key)).toMatchObject({ code: 0, out: online.out })
  expect(await run('verify', fileOf(lines), '--server-key', '0'.repeat(32))).toMatchObject({ code: 1 })
  await admin.call('PUT', '/api/v1/projects/default/repositories/d', repositoryDoc('d'))
  expect(await run('verify', '--expect', end)).toMatchObject({ code: 0 })
  expect(
    await run(
      'verify',
      '--expect',
      end.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    ),
  ).toMatchObject({ code: 1 })
})

test.each<[string, (lines: unknown[]) => unknown[], number]>([
  ['changed', (lines) => lines.map((line, i) => (i === 2 ? JSON.parse(JSON.stringify(line).replace('"b"', '"x"')) : line)), 3],
  ['dropped', (lines) => lines.toSpliced(2, 1), 3],
  ['dropped at the beginning', (lines) => lines.slice(1), 1],
  ['swapped', (lines) => lines.with(1, lines[2]).with(2, lines[1]), 2],
  ['cut off with its end', (lines) => lines.slice(0, -1), 5],
  ['cut off before its end', (lines) => lines.toSpliced(3, 1), 4],
  ['torn', (lines) => lines.with(2, '{"type":"entry","en'), 3],
])('AU4 verification names the first broken entry of an export that was %s', async (_, change, seq) => {
  const { code, out } = await run('verify', fileOf(change(await exported())), '-o', 'json')
  expect(code).toBe(1)
  expect(JSON.parse(out).broken.seq).toBe(seq)
})

const OBJECT_EVENT = {
  ...({ atMs: 1, type: 'Warning', reason: 'Drift', message: 'changed by kubectl-edit' } as const),
  ...{ cluster: 'ship-7', project: null, service: null },
}
test('AU6 with --object the list shows the events of one object in a cluster, however old', async () => {
  const objects = ['apps/Deployment/web/podinfo', 'apps/Deployment/web/other', '/Namespace//web']
  await admin.store.appendEvents(objects.map((object) => ({ ...OBJECT_EVENT, object })))
  await admin.store.appendEvents(Array.from({ length: 600 }, () => ({ ...OBJECT_EVENT, object: null })))
  const list = (...more: string[]) => run('list', '--cluster', 'ship-7', '--no-headers', ...more)
  for (const address of ['Deployment/web/podinfo', 'deploy/web/podinfo', 'deployment.apps/web/podinfo']) {
    const { code, out } = await list('--object', address)
    expect(code).toBe(0)
    expect(out.trim().split('\n')).toEqual([expect.stringMatching(/Deployment\/web\/podinfo +changed by kubectl-edit$/)])
  }
  expect((await list('--object', 'Namespace/web')).out).toContain('Namespace/web')
  expect((await list('--object', 'Deployment/web/none')).err).toEqual(naming('no events'))
  // A cluster that cannot be asked is no failure of the list.
  expect(await list('--object', 'Namespace/web')).toMatchObject({ code: 0, err: naming('field managers') })
  expect(await run('list', '--object', 'Deployment/web/podinfo')).toMatchObject({ code: 2 })
})

test('AU6 with --object the list shows who has written which fields of the live object', async () => {
  const managedFields = [
    {
      ...{ manager: 'skerry', operation: 'Apply', time: '2026-01-01T00:00:00Z' },
      fieldsV1: { 'f:metadata': { 'f:labels': { 'f:app.kubernetes.io/name': {} } }, 'f:spec': { 'f:paused': {} } },
    },
    {
      ...{ manager: 'kubectl-edit', operation: 'Update', time: '2026-01-02T00:00:00Z', subresource: 'scale' },
      fieldsV1: { 'f:spec': { 'f:containers': { 'k:{"name":"web"}': { '.': {}, 'f:image': {} } }, 'f:replicas': {} } },
    },
  ]
  const lines = [{ t: 'object', object: { kind: 'Deployment', metadata: { managedFields } }, masked: [] }, { t: 'end' }]
  const asked: unknown[] = []
  const { code, out } = await runTestCli(admin, ['audit', 'list', '--cluster', 'ship-7', '--object', 'deploy/web/podinfo'], {
    fetch: async (url: string, init?: RequestInit) => {
      if (!url.endsWith('/clusters/ship-7/ask')) return Response.json({ items: [], continue: null })
      asked.push(JSON.parse(String(init?.body)))
      return new Response(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    },
  } as never)
  expect(code).toBe(0)
  expect(asked).toMatchObject([{ question: { kind: 'object', managedFields: true, ref: { group: 'apps', name: 'podinfo' } } }])
  expect(
    out
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/)),
  ).toEqual([
    ['MANAGER', 'OPERATION', 'TIME', 'FIELDS'],
    ['kubectl-edit/scale', 'Update', '2026-01-02T00:00:00Z', '.spec.containers[name=web].image, .spec.replicas'],
    ['skerry', 'Apply', '2026-01-01T00:00:00Z', '.metadata.labels["app.kubernetes.io/name"], .spec.paused'],
  ])
})
