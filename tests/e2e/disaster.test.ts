// The runbook "The server is lost", as an operator does it: an encrypted archive, its key, an agent that knows newer revisions, and a person who confirms.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import { eventually } from '../support/kube-cluster.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(240_000)
let scenario: Scenario | undefined
afterAll(() => scenario?.stop(), 60_000)

test.skipIf(postgresIsWanted())(
  'BK5 BK8 RP2 a lost server comes back from an archive, deletes nothing, and goes on after the confirmation',
  async () => {
    scenario = await startScenario({ sites: { oslo: { controllers: false } } })
    const { fleet, push, settled, sites } = scenario
    const { cluster, agent } = sites['oslo'] as NonNullable<(typeof sites)[string]>
    const names = async () =>
    (await cluster.kubectl(['get', 'configmap', '-n', 'web', '-o', 'jsonpath={range .items[*]}{.metadata.name}={.data.v} {end}'])).trim().split(' ').filter((one) => !one.startsWith('kube-root')) // biome-ignore format: one line
    await fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) })
    await settled('oslo', ['web'], { commit: await push({ 'web/a.yaml': configMapYaml('a', { v: '1' }) }) })

    const [place, key] = [join(tempDir(), 'backups'), join(tempDir(), 'backup.key')]
    const identity = await generateX25519Identity()
    writeFileSync(key, `# secret\n${identity}\n`, { mode: 0o600 })
    const recipients = await identityToRecipient(identity)
    await fleet.run(['backup', 'create', '--data', fleet.dataDir, '--into', place, '--recipients', recipients])
    // A change that no backup has: the agent knows more than the server that comes back.
    await settled('oslo', ['web'], { commit: await push({ 'web/b.yaml': configMapYaml('b', { v: '2' }) }) })

    await fleet.killServer()
    rmSync(fleet.dataDir, { recursive: true })
    const [archive = ''] = (await fleet.run(['backup', 'list', place])).trim().split('\n').at(-1)?.split(' ') ?? []
    const path = join(place, archive)
    expect(archive).toMatch(/^skerry-\d{8}T\d{6}Z\.tar\.zst\.age$/)
    const refused = await fleet.skerry(['backup', 'restore', path, '--data', fleet.dataDir])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--identity')])
    expect((await fleet.skerry(['backup', 'verify', path, '--identity', key])).code).toBe(0)
    await fleet.run(['backup', 'restore', path, '--identity', key, '--data', fleet.dataDir])
    await fleet.startServer({ wait: false })

    await eventually('the server waits for a person', async () => /oslo/.test((await fleet.skerry(['restore'])).stdout), 90_000)
    expect(await names()).toEqual(['a=1', 'b=2'])
    await fleet.run(['restore', 'confirm', '--yes'])
    await agent.start() // it would ask again within two minutes
    const commit = await push({ 'web/c.yaml': configMapYaml('c', { v: '3' }) })
    await settled('oslo', ['web'], { commit, timeoutMs: 120_000 })
    expect(await names()).toEqual(['a=1', 'b=2', 'c=3'])
    expect((await fleet.run(['get', 'clusters'])).trim()).toMatch(/oslo +.*Online/i)
  },
)
