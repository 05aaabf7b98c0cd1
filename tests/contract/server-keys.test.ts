import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { checkpointBytes } from '../../shared/protocol/frames.ts'
import { joinAnswerBytes, joinAnswerSchema } from '../../shared/protocol/join.ts'
import { followLinks, KEY_LINKS_MAX, keyLinkBytes, keyRevocationBytes, withoutRevoked } from '../../shared/protocol/key-links.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerBytes, sessionAnswerSchema } from '../../shared/protocol/session.ts'
import { fingerprint, generateKey, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
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
  expect(done.out).toMatch(/^server-key\/[0-9a-f]{32} now signs\n$/)
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

test('RP9 a revocation names the oldest key that is trusted still, survives a restart and a rotation, and is refused when there is nothing to revoke', () => {
  const folder = tempDir()
  const keys = loadServerKeys(folder)
  expect(() => keys.revoke(null, 1)).toThrow('no trusted key')
  keys.rotate(1)
  keys.rotate(2)
  const [first, second, third] = keys.history.map(({ publicKey }) => publicKey)
  keys.revoke(fingerprint(second ?? ''), 3)
  expect(keys.history.map(({ isRevoked }) => isRevoked)).toEqual([true, false, false])
  for (const refused of [fingerprint(first ?? ''), fingerprint(second ?? ''), '0'.repeat(32)])
    expect(() => keys.revoke(refused, 4)).toThrow()
  keys.rotate(5)
  const again = loadServerKeys(folder)
  expect([again.revocation, again.history]).toEqual([keys.revocation, keys.history])
  expect(withoutRevoked([first ?? '', second ?? '', third ?? ''], again.links, again.revocation)).toEqual([second ?? '', third ?? ''])
})

test('RP9 only the word of the oldest key that stays, or of one that follows from it, revokes; a link made with a stolen key revokes nothing', () => {
  // The thief has the server's first private key, and links a key of his own to it.
  const stolen = generateKey('ed25519')
  const [own, next] = [generateKey('ed25519'), generateKey('ed25519')]
  const link = {
    key: next.publicKey,
    by: stolen.publicKey,
    signature: signBytes(stolen.privateKey, keyLinkBytes(next.publicKey, stolen.publicKey)),
  }
  const forged = {
    key: own.publicKey,
    by: stolen.publicKey,
    signature: signBytes(stolen.privateKey, keyLinkBytes(own.publicKey, stolen.publicKey)),
  }
  const word = (oldest: string, by: { privateKey: string }) => ({ oldest, signature: signBytes(by.privateKey, keyRevocationBytes(oldest)) })
  const pinned = [stolen.publicKey, next.publicKey]
  expect(withoutRevoked(pinned, [link], word(next.publicKey, next))).toEqual([next.publicKey])
  expect(withoutRevoked([...pinned, own.publicKey], [link, forged], word(next.publicKey, next))).toEqual([next.publicKey])
  expect(withoutRevoked([...pinned, own.publicKey], [link, forged], word(own.publicKey, own))).toEqual([...pinned, own.publicKey])
  expect(withoutRevoked(pinned, [link], word(next.publicKey, stolen))).toEqual(pinned)
  expect(withoutRevoked(pinned, [link], word(own.publicKey, own))).toEqual(pinned)
  expect(withoutRevoked(pinned, [link], undefined)).toEqual(pinned)
})

test('RP9 after a revocation an agent pins no earlier key, and refuses a server that is put back to one', async () => {
  const fleet = await restorableFleet(['ship-1', 'ship-2'])
  const { server, clock, agent } = fleet
  const pinned = (name: string) => agent(name).state?.identity()?.serverKeys.length
  await fleet.backUp()
  server.keys.rotate(1)
  await clock.advance(300_000)
  expect(pinned('ship-1')).toBe(2)
  fleet.online.delete('ship-2')
  server.keys.revoke(null, 2)
  await clock.advance(300_000)
  expect([pinned('ship-1'), pinned('ship-2')]).toEqual([1, 2])
  fleet.online.add('ship-2')
  await clock.advance(300_000)
  expect(pinned('ship-2')).toBe(1)
  const failures = ['ship-1', 'ship-2'].map((name) => agent(name).loop?.status().failure)
  expect(failures).toEqual([null, null])
  await fleet.restore('store and shards')
  await clock.advance(300_000)
  for (const name of ['ship-1', 'ship-2'])
    expect(agent(name).loop?.status()).toMatchObject({ state: 'halted', failure: { code: 'server_key_mismatch' } })
  await fleet.stop()
})

test('RP9 a head proof by a revoked key says nothing about a restore', async () => {
  const test = await startTestServer()
  const agent = await joinTestAgent(test)
  const page = await test.ask('GET', ROUTES.desired, { token: agent.session.token })
  const [hello, checkpoint] = String(page.bytes)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const { keys } = test.server
  const { t: _, ...covered } = { ...hello, epoch: 99 }
  const signature = keys.sign(checkpointBytes(agent.clusterId, covered, checkpoint))
  const proof = { hello: { ...hello, epoch: 99 }, checkpoint: { ...checkpoint, signature } }
  keys.rotate(1)
  keys.revoke(null, 2)
  await test.server.restoreGate.offer(agent.clusterId, proof)
  expect(test.server.restoreGate.pending()).toBe(false)
})

test.each([
  ['an empty file', ''],
  ['a short key', 'AAAA'],
  ['a good key and an empty line', `${'A'.repeat(43)}\n\nx`],
])('KM2 a mac.key that is %s is refused and left as it is', (_, text) => {
  const folder = tempDir()
  writeFileSync(join(folder, 'mac.key'), text)
  expect(() => loadServerKeys(folder)).toThrow(expect.objectContaining({ code: 'data_unusable' }))
  expect(readFileSync(join(folder, 'mac.key'), 'utf8')).toBe(text)
})

test('KM1 another mac.key ends sessions and changes secrets of webhooks; the ones before count until the next rotation', async () => {
  const folder = tempDir()
  const keys = loadServerKeys(folder)
  const uid = Buffer.from('uid')
  const [first, session] = [keys.mac('webhook', uid), keys.mac('session', uid)]
  expect(keys.earlierMac('webhook', uid)).toBeNull()
  const { generation } = keys
  keys.rotateMac()
  expect([keys.generation === generation, keys.mac('session', uid).equals(session), keys.mac('webhook', uid).equals(first)]).toEqual([
    false,
    false,
    false,
  ])
  expect(loadServerKeys(folder).earlierMac('webhook', uid)).toEqual(first)
  keys.rotateMac()
  expect(keys.earlierMac('webhook', uid)?.equals(first)).toBe(false)
  expect(statSync(join(folder, 'mac.key')).mode & 0o777).toBe(0o600)

  const test = await startTestServer()
  const agent = await joinTestAgent(test)
  const pull = async () => (await test.ask('GET', ROUTES.desired, { token: agent.session.token })).body['code']
  expect(await pull()).toBeUndefined()
  test.server.keys.rotateMac()
  expect(await pull()).toBe('session_required')
})

test('RP9 KM1 CG7 the command line shows what follows, asks, and revokes or rotates; join tokens of revoked keys go', async () => {
  const admin = await createTestAdmin()
  const cli = (...argv: string[]) => runTestCli(admin, ['server-key', ...argv])
  expect((await cli('revoke', '--yes')).code).toBe(2)
  await admin.call('POST', '/api/v1/join-tokens', {})
  admin.clock.nowMs += 1
  await cli('rotate', '--yes')
  await admin.call('POST', '/api/v1/join-tokens', {})
  expect((await cli('revoke')).code).toBe(2) // nobody can be asked
  expect((await cli('revoke', '--yes')).out).toMatch(/^server-key\/[0-9a-f]{32} revoked\n$/)
  expect((await cli('list', '--no-headers')).out.match(/revoked|earlier|signing/g)).toEqual(['revoked', 'signing'])
  expect(await admin.store.listJoinTokens()).toHaveLength(1)
  expect((await cli('rotate', 'mac', '--yes')).code).toBe(0)
  expect((await cli('rotate', 'secrets', '--yes')).out).toBe('0 secrets of 0 Configs sealed under new data keys\n')
  expect((await cli('rotate', 'everything')).code).toBe(2)
  const reasons = (await admin.store.listEvents({ limit: 10 })).map(({ reason }) => reason)
  expect(reasons).toEqual(['ServerKeyRotated', 'ServerKeysRevoked', 'MacKeyRotated', 'SecretKeyRotated'])
})
