// Credentials of agents in the API and on the command line: listed and revoked like API tokens.
import { expect, test } from 'bun:test'
import { createTestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { agentId, clusterId, joinCluster } from '../support/store-fixtures.ts'

test('SI15 agents are listed with last contact and state, page by page, and revoked through their Cluster', async () => {
  const admin = await createTestAdmin()
  for (const n of ['1', '2', '3']) await joinCluster(admin.store, n)
  const page = await admin.call('GET', '/api/v1/agents?limit=2')
  const { items, continue: next } = page.body as { items: Array<Record<string, unknown>>; continue: string }
  expect(items).toMatchObject([{ state: 'valid', cluster: 'cluster-1' }, { cluster: 'cluster-2' }])
  expect(JSON.stringify(items)).not.toContain('token')
  const rest = await admin.call('GET', `/api/v1/agents?limit=2&continue=${next}`)
  expect(rest.body).toMatchObject({ items: [{ cluster: 'cluster-3' }], continue: null })
  const id = String(items[1]?.['id'])
  expect(await runTestCli(admin, ['token', 'revoke', id, '--yes'])).toMatchObject({ code: 0, out: expect.stringContaining('cluster-2') })
  expect(await admin.store.agent(agentId('2'))).toMatchObject({ clusterId: clusterId('2'), revoked: true })
  const { out } = await runTestCli(admin, ['token', 'list', '--agents'])
  expect(out).toMatch(new RegExp(`^${id} +cluster-2 +revoked `, 'm'))
  expect(await runTestCli(admin, ['token', 'revoke', 'a-ffffffffffffffff', '--yes'])).toMatchObject({ code: 1 })
})

test('SL11 another recipient key is asked for by names, by labels or of all, and never of an unknown cluster', async () => {
  const admin = await createTestAdmin()
  for (const n of ['1', '2', '3']) await joinCluster(admin.store, n)
  const north = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'cluster-2', labels: { region: 'north' } }, spec: {} }
  expect((await admin.call('POST', '/api/v1/apply', { resources: [north] })).status).toBe(200)
  const asked = async () => {
    const { items } = (await admin.call('GET', '/api/v1/agents')).body as { items: { cluster: string; rotating: boolean }[] }
    return items.filter(({ rotating }) => rotating).map(({ cluster }) => cluster)
  }
  const rotate = (...args: string[]) => runTestCli(admin, ['cluster', 'rotate-recipient', ...args])
  expect(await rotate('--yes')).toMatchObject({ code: 2 })
  expect(await rotate('cluster-1', '--all', '--yes')).toMatchObject({ code: 2 })
  expect(await rotate('cluster-1', 'cluster-9', '--yes')).toMatchObject({ code: 1, err: expect.stringContaining('cluster-9') })
  expect(await rotate('-l', 'region=south', '--yes')).toMatchObject({ code: 1 })
  expect(await rotate('cluster-1')).toMatchObject({ code: 2 }) // nobody can be asked
  expect(await asked()).toEqual([])
  expect(await rotate('-l', 'region=north', '--yes')).toMatchObject({ code: 0 })
  expect(await asked()).toEqual(['cluster-2'])
  expect(await rotate('cluster-3', '--yes')).toMatchObject({ code: 0 })
  expect(await asked()).toEqual(['cluster-2', 'cluster-3'])
  expect(await rotate('--all', '--yes')).toMatchObject({ code: 0 })
  expect(await asked()).toEqual(['cluster-1', 'cluster-2', 'cluster-3'])
})
