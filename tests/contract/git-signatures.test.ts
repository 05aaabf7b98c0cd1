// Which commits count, shown with signatures by the real gpg and the real ssh-keygen, through git's own `commit -S` and
// `tag -s`.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositorySpecSchema } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createGitKit, failureOf, type GitKit, gitAt, gitIn } from '../support/git-source-kit.ts'
import { configMap, createIngestKit } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'
import { makeKey } from '../support/ssh-server.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
const gpgIsThere = Bun.which('gpg') !== null

let kit: GitKit
let work = ''
beforeAll(async () => {
  kit = await createGitKit('library over http')
  work = join(kit.root, 'remote', 'work')
})
afterAll(() => kit.close())

/** Signs with an SSH key whose private half is in that file. */
const sshOptions = (key: string) => ['-c', 'gpg.format=ssh', '-c', `user.signingKey=${key}`]
let counter = 0
function commitWith(...options: string[]): string {
  writeFileSync(join(work, 'a.yaml'), `a: ${counter++}\n`)
  gitIn(work, 'add', '.')
  gitIn(work, ...options, 'commit', '-q', ...(options.length === 0 ? [] : ['-S']), '-m', 'Grüße\n\n-----BEGIN SSH SIGNATURE-----\nnone\n')
  gitIn(work, 'push', '-q', 'origin', 'HEAD:main')
  return gitIn(work, 'rev-parse', 'HEAD')
}
const verified = (keys: string[], more: { ref?: string; clock?: Clock; dir?: string } = {}) => {
  const { clock, ...options } = more
  return kit.open({ verify: { keys }, ...options }, clock === undefined ? {} : { clock })
}
const fingerprint = (publicKey: string) =>
  Bun.spawnSync(['ssh-keygen', '-lf', '-'], { stdin: Buffer.from(publicKey) })
    .stdout.toString()
    .split(' ')[1] ?? ''
const later = (ms: number): Clock => ({ ...systemClock, nowMs: () => systemClock.nowMs() + ms })

describe('SSH', () => {
  const dir = tempDir()
  const ed = makeKey(join(dir, 'ed'))
  const other = makeKey(join(dir, 'other'))

  test.each(['ed25519', 'rsa', 'ecdsa'])(
    'SO30 a commit signed by a key of type %s is used, and one by another key is not',
    async (type) => {
      const key = makeKey(join(tempDir(), type), type)
      const commit = commitWith(...sshOptions(join(dir, 'ed')))
      const source = verified([`# people\n${other.publicKey}\n`, key.publicKey])
      const [code, message] = await failureOf(source.fetch())
      expect(code).toBe('commit_unverified')
      expect(message).toEqual(
        naming(
          `commit ${commit}`,
          fingerprint(ed.publicKey),
          'another key',
          `Accepted: ${fingerprint(other.publicKey)}, ${fingerprint(key.publicKey)}`,
        ),
      )
      writeFileSync(join(dir, `own-${type}`), key.privateKey, { mode: 0o600 })
      writeFileSync(join(dir, `own-${type}.pub`), `${key.publicKey}\n`)
      const good = commitWith(...sshOptions(join(dir, `own-${type}`)))
      expect(await source.fetch()).toBe(good)
      expect(await source.has(good)).toBe(true)
    },
  )

  test('SO30 an unsigned commit moves nothing: the last verified one stays readable, and the refusal is not fetched again', async () => {
    const good = commitWith(...sshOptions(join(dir, 'ed')))
    const source = verified([ed.publicKey])
    expect(await source.fetch()).toBe(good)
    const bad = commitWith()
    const refusal = `commit ${bad} is not rendered: commit ${bad} is not signed. Accepted: ${fingerprint(ed.publicKey)}`
    expect(await failureOf(source.fetch())).toEqual(['commit_unverified', refusal])
    kit.requests.length = 0
    expect(await failureOf(source.head())).toEqual(['commit_unverified', refusal])
    expect(kit.requests).toHaveLength(1)
    expect([await source.has(bad), await source.has(good)]).toEqual([false, true])
    expect((await failureOf(source.open(bad, { path: '.' })))[0]).toBe('commit_unverified')
    expect((await (await source.open(good, { path: '.' })).tree.file('a.yaml')) !== null).toBe(true)
    const next = commitWith(...sshOptions(join(dir, 'ed')))
    expect(await source.fetch()).toBe(next)
  })

  test('SO55 a ref that goes back to an older signed commit is refused, also after a restart; a child counts whatever its clock says', async () => {
    const at = (seconds: number) => {
      gitAt(seconds, work, ...sshOptions(join(dir, 'ed')), 'commit', '-qS', '--allow-empty', '-m', `at ${seconds}`)
      return gitIn(work, 'rev-parse', 'HEAD')
    }
    const move = (commit: string) => gitIn(work, 'push', '-qf', 'origin', `${commit}:refs/heads/dated`)
    const options = { ref: 'dated', dir: kit.newDir() }
    const source = verified([ed.publicKey], options)
    const first = at(1_700_000_000)
    move(first)
    expect(await source.fetch()).toBe(first)
    const second = at(1_700_000_100)
    move(second)
    expect(await source.fetch()).toBe(second)
    move(first)
    const refusal: [string, string] = [
      'commit_unverified',
      naming(`commit ${first}`, '2023-11-14T22:13:20.000Z', `commit ${second} of 2023-11-14T22:15:00.000Z`),
    ]
    expect(await failureOf(source.fetch())).toEqual(refusal)
    expect(await failureOf(source.head())).toEqual(refusal)
    expect(await failureOf(verified([ed.publicKey], options).fetch())).toEqual(refusal)
    expect(await source.has(second)).toBe(true)
    expect(await verified([ed.publicKey], { ref: first }).fetch()).toBe(first)
    const child = at(1_700_000_050)
    move(child)
    expect(await source.fetch()).toBe(child)
    move(second)
    expect((await failureOf(source.fetch()))[0]).toBe('commit_unverified')
  })

  test('SO55 the server refuses an older signed commit also when the folders of its sources are lost, and tells when it begins to', async () => {
    const server = await createIngestKit()
    const at = async (seconds: number) => {
      await server.git.commit({ 'shop/a.yaml': configMap('a', String(seconds)) }, 'unsigned')
      gitAt(seconds, join(server.dir, 'remote', 'work'), ...sshOptions(join(dir, 'ed')), 'commit', '-qS', '--amend', '-m', 'signed')
      gitIn(join(server.dir, 'remote', 'work'), 'push', '-qf', 'origin', 'HEAD:main')
      return gitIn(join(server.dir, 'remote', 'work'), 'rev-parse', 'HEAD')
    }
    const state = () => server.store.repositoryState('default', 'apps')
    const older = await at(1_700_000_000)
    const newer = await at(1_700_000_100)
    await server.repository()
    const key = { kind: 'Repository', project: 'default', name: 'apps' } as const
    const git = { url: server.git.url, ref: 'main', verify: { keys: [ed.publicKey] } }
    const spec = JSON.stringify(repositorySpecSchema.parse({ git }))
    await server.store.applyResource(key, { labels: {}, spec, nowMs: systemClock.nowMs() })
    await server.ingest.repositoryChanged('default', 'apps')
    expect(await state()).toMatchObject({ commit: newer, error: null })
    expect((await server.events()).filter((event) => event.startsWith('VerificationBegan'))).toEqual([expect.stringContaining(newer)])
    rmSync(join(server.dir, 'git'), { recursive: true })
    gitIn(join(server.dir, 'remote', 'work'), 'push', '-qf', 'origin', `${older}:main`)
    await server.restarted().repositoryChanged('default', 'apps')
    expect(await state()).toMatchObject({ commit: newer, error: { code: 'commit_unverified' } })
    await server.close()
  })

  test('SO30 a changed commit, another namespace, a cut signature and two of them are refused', async () => {
    const commit = commitWith(...sshOptions(join(dir, 'ed')))
    const raw = Bun.spawnSync(['git', '-C', work, 'cat-file', 'commit', commit]).stdout.toString()
    const variants: [string, string][] = [
      ['not match', raw.replace('Grüße', 'Gruesse')],
      ['created for', raw.replace(/gpgsig -----BEGIN[\s\S]*?END SSH SIGNATURE-----\n/, () => gpgsig(signedAs('file', raw)))],
      ['valid SSH signature', raw.replace(/(gpgsig -----BEGIN SSH SIGNATURE-----\n \S+\n) \S+\n/, '$1')],
      ['unsupported type', raw.replace('BEGIN SSH SIGNATURE', 'BEGIN SIGNED MESSAGE')],
      ['unsupported type', raw.replace(/(gpgsig -----BEGIN[\s\S]*?END SSH SIGNATURE-----\n)/, '$1$1')],
    ]
    for (const [what, text] of variants) {
      expect(text).not.toBe(raw)
      const made = Bun.spawnSync(['git', '-C', work, 'hash-object', '-t', 'commit', '-w', '--literally', '--stdin'], {
        stdin: Buffer.from(text),
      })
      gitIn(work, 'push', '-qf', 'origin', `${made.stdout.toString().trim()}:refs/heads/forged`)
      expect(await failureOf(verified([ed.publicKey], { ref: 'forged' }).fetch())).toEqual([
        'commit_unverified',
        expect.stringContaining(what),
      ])
    }
  })

  function signedAs(namespace: string, raw: string): string {
    const payload = raw.replace(/gpgsig -----BEGIN[\s\S]*?END SSH SIGNATURE-----\n/, '')
    const file = join(tempDir(), 'payload')
    writeFileSync(file, payload)
    Bun.spawnSync(['ssh-keygen', '-Y', 'sign', '-q', '-n', namespace, '-f', join(dir, 'ed'), file], { stderr: 'ignore' })
    return Bun.spawnSync(['cat', `${file}.sig`]).stdout.toString()
  }
  const gpgsig = (armored: string) => `gpgsig ${armored.trim().replaceAll('\n', '\n ')}\n`

  test('SO31 bounds in the line of a key hold: its time, and what it is for', async () => {
    const good = commitWith(...sshOptions(join(dir, 'ed')))
    for (const [line, what] of [
      [`expiry-time="20200101" ${ed.publicKey}`, 'expired'],
      [`namespaces="file" ${ed.publicKey}`, 'allow git'],
      [`cert-authority ${ed.publicKey}`, 'certificate authority'],
      ['ssh-dss AAAAB3NzaC1kc3MAAACB', 'kind of key'],
      ['nonsense', 'spec.git.verify.keys[0]: not an SSH'],
      ['# nobody', 'spec.git.verify.keys[0] has no'],
      ['-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxx\n-----END PGP PUBLIC KEY BLOCK-----', 'armored OpenPGP'],
    ] as const)
      expect(await failureOf(verified([line]).fetch())).toEqual(['commit_unverified', expect.stringContaining(what)])
    expect(await verified([`namespaces="git",valid-before="29990101" ${ed.publicKey} me@example.com`]).fetch()).toBe(good)
    const weak = join(tempDir(), 'weak')
    Bun.spawnSync(['ssh-keygen', '-q', '-t', 'rsa', '-b', '1024', '-N', '', '-f', weak])
    const line = await Bun.file(`${weak}.pub`).text()
    expect(await failureOf(verified([line]).fetch())).toEqual(['commit_unverified', naming('RSA', '2048 bits')])
  })

  test('SO31 a key that is not valid yet is one from its time on, and the commit is looked at again then', async () => {
    const commit = commitWith(...sshOptions(join(dir, 'ed')))
    const validMs = Date.UTC(2100, 0, 1)
    let nowMs = validMs - 5_000
    const source = verified([`valid-after="21000101Z" ${ed.publicKey}`], { clock: { ...systemClock, nowMs: () => nowMs } })
    for (const act of ['fetch', 'head'] as const)
      expect(await failureOf(source[act]())).toEqual(['commit_unverified', naming('not valid yet')])
    nowMs = validMs
    expect([await source.head(), await source.fetch()]).toEqual([commit, commit])
  })

  test('SO32 a signed tag is enough, under its own name', async () => {
    const commit = commitWith()
    gitIn(work, ...sshOptions(join(dir, 'ed')), 'tag', '-s', 'v1.0.0', '-m', 'release')
    gitIn(work, 'tag', '-a', 'v2.0.0', '-m', 'not signed')
    gitIn(work, 'push', '-q', 'origin', '--tags')
    gitIn(work, 'push', '-q', 'origin', 'v1.0.0:refs/tags/v9.0.0')
    expect(await verified([ed.publicKey], { ref: 'v1.0.0' }).fetch()).toBe(commit)
    for (const ref of ['v2.0.0', 'v9.0.0', 'main'])
      expect((await failureOf(verified([ed.publicKey], { ref }).fetch()))[0]).toBe('commit_unverified')
    expect(await failureOf(verified([other.publicKey], { ref: 'v1.0.0' }).fetch())).toEqual([
      'commit_unverified',
      naming(fingerprint(ed.publicKey), 'another key'),
    ])
  })
})

test.each(['library', 'cli'] as const)(
  'SO32 a tag that is signed afterwards, of the commit that was refused, is seen by the next poll of client %s',
  async (client) => {
    const dir = tempDir()
    const { publicKey } = makeKey(join(dir, 'key'))
    const commit = commitWith()
    const tag = `v5.0.${counter++}`
    gitIn(work, 'tag', tag)
    gitIn(work, 'push', '-q', 'origin', tag)
    const source = kit.open({ verify: { keys: [publicKey] }, ref: tag, client })
    expect((await failureOf(source.fetch()))[0]).toBe('commit_unverified')
    expect((await failureOf(source.head()))[0]).toBe('commit_unverified')
    gitIn(work, ...sshOptions(join(dir, 'key')), 'tag', '-f', '-s', tag, '-m', 'release')
    gitIn(work, 'push', '-q', '--force', 'origin', tag)
    expect(await source.head()).toBe(commit)
    expect(await source.fetch()).toBe(commit)
  },
)

describe.skipIf(!gpgIsThere)('OpenPGP', () => {
  const home = join(tempDir(), 'gnupg')
  const gpg = (...args: string[]) => {
    const done = Bun.spawnSync(['gpg', '--homedir', home, '--batch', '--yes', '--pinentry-mode', 'loopback', '--passphrase', '', ...args])
    if (done.exitCode !== 0) throw new Error(done.stderr.toString())
    return done.stdout.toString()
  }
  const newKey = (name: string, algorithm: string, expire: string, made: readonly string[] = []) => {
    gpg(...made, '--quick-gen-key', `${name} <${name}@example.com>`, algorithm, 'sign', expire)
    const list = gpg('--list-keys', '--with-colons', `${name}@example.com`)
    return { fingerprint: /^fpr:+([0-9A-F]{40}):/m.exec(list)?.[1] ?? '', armored: gpg('--armor', '--export', `${name}@example.com`) }
  }
  const wrapper = join(home, 'gpg.sh')
  const options = (key: string) => ['-c', 'gpg.format=openpgp', '-c', `gpg.program=${wrapper}`, '-c', `user.signingKey=${key}`]

  beforeAll(() => {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    writeFileSync(wrapper, `#!/bin/sh\nexec gpg --homedir '${home}' --batch --pinentry-mode loopback --passphrase '' "$@"\n`, {
      mode: 0o700,
    })
  })
  afterAll(() => {
    Bun.spawnSync(['gpgconf', '--homedir', home, '--kill', 'all'])
  })

  test.each([
    ['ed', 'ed25519'],
    ['rsa', 'rsa2048'],
    ['nist', 'nistp256'],
  ])('SO30 a commit signed by gpg with %s is used, by another key not', async (name, algorithm) => {
    const key = newKey(name, algorithm, '0')
    const commit = commitWith(...options(key.fingerprint))
    expect(await verified([key.armored]).fetch()).toBe(commit)
    const foreign = newKey(`${name}-foreign`, 'ed25519', '0')
    const [code, message] = await failureOf(verified([foreign.armored]).fetch())
    expect(code).toBe('commit_unverified')
    expect(message).toEqual(naming(`commit ${commit}`, key.fingerprint.slice(-16), 'another key', `Accepted: ${foreign.fingerprint}`))
  })

  test('SO31 an expired key and a revoked one are refused, though the signature is older; what was in force stays', async () => {
    const key = newKey('short', 'ed25519', '2d')
    const commit = commitWith(...options(key.fingerprint))
    const dir = kit.newDir()
    expect(await verified([key.armored], { dir }).fetch()).toBe(commit)
    const clock = later(3 * 86_400_000)
    expect(await failureOf(verified([key.armored], { clock }).fetch())).toEqual(['commit_unverified', naming('expired')])
    expect(await verified([key.armored], { dir, clock }).has(commit)).toBe(true)
    const revoked = newKey('revoked', 'ed25519', '0')
    const signed = commitWith(...options(revoked.fingerprint))
    expect(await verified([revoked.armored]).fetch()).toBe(signed)
    const certificate = Bun.file(join(home, 'openpgp-revocs.d', `${revoked.fingerprint}.rev`))
    const revocation = join(home, 'revoke.asc')
    await Bun.write(revocation, (await certificate.text()).replace(':-----BEGIN', '-----BEGIN'))
    gpg('--import', revocation)
    const armored = gpg('--armor', '--export', 'revoked@example.com')
    expect(await failureOf(verified([armored]).fetch())).toEqual(['commit_unverified', naming('revoked')])
  })

  test('SO31 a signature of a clock that is ahead of ours is refused until its time, and looked at again then', async () => {
    const key = newKey('ahead', 'ed25519', '0', ['--faked-system-time', '20240101T000000'])
    const commit = commitWith(...options(key.fingerprint))
    const madeMs = Number(kit.git('log', '-1', '--format=%ct')) * 1_000
    for (const [behindMs, why] of [
      [3_000, 'future'],
      [madeMs - Date.UTC(2023, 0), 'not valid yet'],
    ] as const) {
      let nowMs = madeMs - behindMs
      const source = verified([key.armored], { clock: { ...systemClock, nowMs: () => nowMs } })
      expect(await failureOf(source.fetch())).toEqual(['commit_unverified', expect.stringContaining(why)])
      expect((await failureOf(source.head()))[0]).toBe('commit_unverified')
      nowMs = madeMs + 5_000
      expect([await source.head(), await source.fetch()]).toEqual([commit, commit])
    }
  })

  test('SO32 a tag signed by gpg', async () => {
    const key = newKey('tagger', 'ed25519', '0')
    const commit = commitWith()
    gitIn(work, ...options(key.fingerprint), 'tag', '-s', 'v3.0.0', '-m', 'release')
    gitIn(work, 'push', '-q', 'origin', '--tags')
    expect(await verified([key.armored], { ref: 'v3.0.0' }).fetch()).toBe(commit)
  })
})
