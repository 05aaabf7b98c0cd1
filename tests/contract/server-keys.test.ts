import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { joinAnswerBytes, joinAnswerSchema } from '../../shared/protocol/join.ts'
import { followLinks, KEY_LINKS_MAX } from '../../shared/protocol/key-links.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerBytes, sessionAnswerSchema } from '../../shared/protocol/session.ts'
import { fingerprint, verifyBytes } from '../../shared/runtime/keys.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { askNonce, joinBody, joinTestAgent, newAgentKeys, openTestSession, sessionBody, startTestServer } from '../support/agent-api-kit.ts'
import { runTestCli } from '../support/cli-run.ts'
import { restorableFleet } from '../support/restore-kit.ts'
import { WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const bytes = Buffer.from('what is signed')

test('RP7 a rotation signs with a new key at once, survives a restart, and leaves nothing of the old private key', () => {
  const folder = tempDir()
  const keys = loadServerKeys(folder)
  const path = join(folder, 'signing.json')
  const first = {
    key: keys.publicKeys[0],
    print: keys.fingerprint,
    secret: JSON.parse(readFileSync(path, 'utf8')).privateKey,
    mac: keys.mac('webhook', bytes),
  }
  keys.rotate(7)
  expect(keys.publicKeys[0]).not.toBe(first.key)
  expect(keys.fingerprint).toBe(fingerprint(keys.publicKeys[0]))
  expect([verifyBytes(keys.publicKeys[0], bytes, keys.sign(bytes)), verifyBytes(first.key, bytes, keys.sign(bytes))]).toEqual([true, false])
  expect(keys.mac('webhook', bytes)).toEqual(first.mac) // webhooks in forges stay as they are
  const again = loadServerKeys(folder)
  expect([again.publicKeys, again.links, again.history]).toEqual([keys.publicKeys, keys.links, keys.history])
  expect(again.history.map(({ sinceMs }) => sinceMs)).toEqual([null, 7])
  for (const name of readdirSync(folder)) expect(readFileSync(join(folder, name), 'utf8')).not.toContain(first.secret)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('RP7 a crash in the midst of a rotation leaves the old key or the new one, whole', () => {
  const folder = tempDir()
  const before = loadServerKeys(folder).fingerprint
  writeFileSync(join(folder, 'signing.json.new'), '{"publicKey":"half')
  const after = loadServerKeys(folder)
  expect(after.fingerprint).toBe(before)
  expect(readdirSync(folder).sort()).toEqual(['mac.key', 'signing.json'])
  after.rotate(1)
  expect(loadServerKeys(folder).fingerprint).toBe(after.fingerprint)
})

test('RP7 killed at any moment of a rotation: the folder holds one whole key, and links that lead to it', async () => {
  const folder = tempDir()
  loadServerKeys(folder)
  const script = `
    import { loadServerKeys } from ${JSON.stringify(join(import.meta.dir, '../../server/access/server-keys.ts'))}
    const keys = loadServerKeys(${JSON.stringify(folder)})
    process.stdout.write('ready')
    for (let n = 0; ; n++) keys.rotate(n)`
  let rotations = 0
  for (let round = 0; round < 10; round++) {
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
    await child.stdout.getReader().read()
    await Bun.sleep(round * 3)
    child.kill('SIGKILL')
    await child.exited
    const keys = loadServerKeys(folder)
    rotations += keys.links.length
    expect(verifyBytes(keys.publicKeys[0], bytes, keys.sign(bytes))).toBe(true)
    const oldest = keys.history[0]?.publicKey ?? ''
    expect(followLinks([oldest], keys.links).at(-1)).toBe(keys.publicKeys[0])
  }
  expect(rotations).toBeGreaterThan(0)
}, 30_000)

test('RP7 links lead from every key that is remembered to the newest, in order; the one before the oldest link is forgotten', () => {
  const keys = loadServerKeys(tempDir())
  const all = [keys.publicKeys[0]]
  for (let n = 1; n <= KEY_LINKS_MAX; n++) {
    keys.rotate(n)
    all.push(keys.publicKeys[0])
  }
  expect(keys.links).toHaveLength(KEY_LINKS_MAX)
  for (const [index, key] of all.entries()) expect(followLinks([key], keys.links)).toEqual(all.slice(index))
  keys.rotate(99)
  expect(keys.links).toHaveLength(KEY_LINKS_MAX)
  expect(followLinks([all[0] ?? ''], keys.links)).toEqual([all[0] ?? '']) // one rotation too many: it joins again
  expect(followLinks([all[1] ?? ''], keys.links).at(-1)).toBe(keys.publicKeys[0])
  expect(keys.history.map(({ publicKey }) => publicKey)).toEqual([...all.slice(1), keys.publicKeys[0]])
})

test('RP7 followLinks takes no link that a trusted key did not sign', () => {
  const [keys, stranger] = [loadServerKeys(tempDir()), loadServerKeys(tempDir())]
  const pinned = keys.publicKeys[0]
  keys.rotate(1)
  keys.rotate(2)
  stranger.rotate(1)
  const [one, two] = keys.links
  if (one === undefined || two === undefined) throw new Error('two links')
  const forged = { ...one, key: stranger.publicKeys[0] }
  expect(followLinks([pinned], [forged, ...stranger.links])).toEqual([pinned])
  expect(followLinks([pinned], [two, one])).toEqual([pinned, one.key]) // out of order: as far as it goes
  expect(followLinks([pinned], [{ ...two, by: pinned }])).toEqual([pinned])
  expect(followLinks([pinned], [one, one, two, two])).toEqual([pinned, one.key, two.key])
})

test('RP7 after a rotation every session is opened anew, and its answer and the join answer lead from the old key to the new', async () => {
  const test = await startTestServer(3)
  const agent = await joinTestAgent(test)
  const pinned = agent.joined.serverKeys
  expect([agent.joined.keyLinks, agent.session.keyLinks]).toEqual([undefined, undefined])
  const printed = test.server.joinToken
  for (let n = 0; n < 3; n++) test.server.keys.rotate(n)
  const { token } = agent.session
  const refused = await test.ask('GET', ROUTES.desired, { token })
  expect([refused.status, refused.body['code']]).toEqual([401, 'session_required'])

  const nonce = await askNonce(test, agent.joined.agentId)
  const answer = await test.ask('POST', ROUTES.session, {
    json: sessionBody(agent.keys, agent.joined.agentId, agent.joined.incarnation, nonce),
  })
  const session = sessionAnswerSchema.parse(answer.body)
  const trusted = followLinks(pinned, session.keyLinks ?? [])
  expect(trusted).toHaveLength(4)
  expect(verifyBytes(trusted.at(-1) ?? '', sessionAnswerBytes(session, nonce), session.signature)).toBe(true)
  expect((await test.ask('GET', ROUTES.desired, { token: session.token })).status).toBe(200)

  // A join token that was printed before the rotations vouches for the first key.
  const keys = newAgentKeys()
  const joined = joinAnswerSchema.parse((await test.ask('POST', ROUTES.join, { json: joinBody(test, keys, 'late') })).body)
  const vouched = printed.split('.')[2]
  const links = joined.keyLinks ?? []
  const known = links.map(({ by }) => by).filter((key) => fingerprint(key) === vouched)
  expect(followLinks(known, links)).toContain(joined.serverKeys[0] ?? '?')
  expect(verifyBytes(joined.serverKeys[0] ?? '', joinAnswerBytes(joined, keys.signing.publicKey), joined.signature)).toBe(true)
  expect(await openTestSession(test, keys, joined, null)).toMatchObject({ clusterId: joined.clusterId })
})

test('RP7 server-key list and rotate: says what follows, asks, writes an event', async () => {
  const admin = await createTestAdmin()
  expect((await runTestCli(admin, ['server-key', 'list', '--no-headers'])).out).toMatch(/^[0-9a-f]{32} +signing +-\n$/)
  const refused = await runTestCli(admin, ['server-key', 'rotate'])
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('use --yes')])
  const no = await runTestCli(admin, ['server-key', 'rotate'], { isTty: true, stdin: 'n\n' })
  expect([no.code, no.err]).toEqual([1, expect.stringContaining('nothing was changed')])
  const done = await runTestCli(admin, ['server-key', 'rotate', '--yes'])
  expect([done.code, done.err]).toEqual([0, expect.stringContaining('backup')])
  expect(done.out).toMatch(/^server-key\/[0-9a-f]{32} signs from now on\n$/)
  expect((await runTestCli(admin, ['server-key', 'list', '--no-headers'])).out.match(/earlier|signing/g)).toEqual(['earlier', 'signing'])
  const [event] = await admin.store.listEvents({ limit: 10 })
  expect(event).toMatchObject({ reason: 'ServerKeyRotated', message: expect.stringContaining('by admin') })
})

test('RP7 an agent that was offline while the key was rotated three times follows, and so does one that was online', async () => {
  const fleet = await restorableFleet(['ship-1', 'ship-2'])
  const { server, clock, agent } = fleet
  const text = async (name: string) => (await fleet.rows(name)).held.get('shop/web') ?? ''
  const publish = async (value: string) => {
    for (const name of ['ship-1', 'ship-2']) {
      const { clusterId } = agent(name)
      if (clusterId !== null) await server.publish(clusterId, WEB, { a: value })
    }
  }
  await publish('one')
  await clock.advance(10_000)
  fleet.online.delete('ship-2')
  for (let n = 1; n <= 3; n++) {
    server.keys.rotate(n)
    await publish(`rotated-${n}`)
    await clock.advance(120_000)
    expect(await text('ship-1')).toContain(`rotated-${n}`)
  }
  expect(await text('ship-2')).toContain('one')
  fleet.online.add('ship-2')
  await clock.advance(300_000)
  expect(await text('ship-2')).toContain('rotated-3')
  for (const name of ['ship-1', 'ship-2']) {
    expect(agent(name).state?.identity()?.serverKeys).toContain(server.keys.publicKeys[0])
    expect(agent(name).loop?.status().failure).toBeNull()
  }
  await fleet.stop()
})

test('RP7 an agent that missed more rotations than are remembered says that the key is another one, and keeps what it holds', async () => {
  const fleet = await restorableFleet(['ship-1'])
  const { server, clock, agent } = fleet
  const { clusterId } = agent('ship-1')
  if (clusterId === null) throw new Error('not joined')
  await server.publish(clusterId, WEB, { a: 'one' })
  await clock.advance(10_000)
  fleet.online.delete('ship-1')
  for (let n = 1; n <= KEY_LINKS_MAX + 1; n++) server.keys.rotate(n)
  await server.publish(clusterId, WEB, { a: 'two' })
  fleet.online.add('ship-1')
  await clock.advance(300_000)
  expect(agent('ship-1').loop?.status()).toMatchObject({ state: 'halted', failure: { code: 'server_key_mismatch' } })
  expect((await fleet.rows('ship-1')).held.get('shop/web')).toContain('one')
  await fleet.stop()
})
