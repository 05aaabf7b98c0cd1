// What of the texts of a cluster leaves the agent: recorded refusals of real API servers, the words of policy engines,
// and generated messages that quote generated documents.
import { describe, expect, test } from 'bun:test'
import { safeLog, safeStatus, safeText } from '../../agent/cluster/redact/safe-text.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { DEPLOYMENT, POLICY_REFUSALS, SECRET } from '../support/policy-refusals.ts'
import { ALL_CASES, caseNamed, corpusNames, readCorpus, safeTexts } from '../support/refusal-corpus.ts'

/** Planted values, also in base64. */
const PLANTED = /canary|Y2FuYXJ5|987654321|hunter|s3cr3t/i

describe.each(corpusNames())('refusals of %s', (file) => {
  const entries = readCorpus(file)

  test('every case is recorded', () => {
    expect(entries.map(({ name }) => name).sort()).toEqual(ALL_CASES.map(({ name }) => name).sort())
  })

  test.each(entries.map((entry) => [entry.name, entry] as const))('KA31 %s', (name, entry) => {
    const texts = safeTexts(entry, [caseNamed(name)?.object])
    expect(texts).toEqual(entry.safe)
    expect(texts.join('\n')).not.toMatch(PLANTED)
  })

  test('KA31 the grammar alone keeps every value back that the API server itself prints', () => {
    // What policies and rules of schemas write is free text: only the document tells which of its words are values.
    const own = entries.filter(
      ({ body, warnings }) =>
        !/ValidatingAdmissionPolicy|note canary|admission webhook|kyverno|\[env-values\]|no-plain-secrets/.test(body + warnings),
    )
    expect(own.length).toBeGreaterThan(90)
    for (const entry of own) expect(safeTexts(entry, []).join('\n')).not.toMatch(PLANTED)
  })
})

describe('words of policies and controllers', () => {
  test.each(POLICY_REFUSALS.map((refusal) => [refusal.name, refusal] as const))(
    'KA31 KA51 %s',
    (_, { said, safe, document = DEPLOYMENT }) => {
      expect(safeText(said, { documents: [document] })).toBe(safe)
      expect(safe).not.toMatch(PLANTED)
    },
  )
})

describe('values that no document knows', () => {
  test.each([
    ['a password with a slash', 'dial postgres://app:Ab3kd9Xq/xyz9@db:5432/app failed', 'dial postgres://db:5432/app failed'],
    ['a password with an @', 'dial postgres://app:pass@word@db:5432/app', 'dial postgres://db:5432/app'],
    ['a password with a bracket', 'dial postgres://app:let(mein@db:5432/app', 'dial postgres://db:5432/app'],
    ['a secret in place of a host', 'get https://Ab3kd9XqSecretToken99 failed', 'get https://<redacted> failed'],
    ['a user without a host', 'dial postgres://app:letmein', 'dial postgres://<redacted>'],
    ['an address of IPv6', 'dial https://u:pw@[fd00::1]:6443/x', 'dial https://[fd00::1]:6443/x'],
    ['an address of IPv4', 'dial https://10.0.0.1:6443/x: timeout', 'dial https://10.0.0.1:6443/x: timeout'],
    ['an address behind a key', 'url=https://app:hunter@db/x', 'url=https://db/x'],
    ['an address behind a secret key', 'dsn=postgres://app:hunter@db/x', '<redacted>'],
    ['settings', 'Id=sa;Password=letmeinplease;Encrypt=true', 'Id=sa;Password=<redacted>;Encrypt=true'],
    ['settings with commas', 'user=app,password=hunter', 'user=app,password=<redacted>'],
    ['settings of a query', 'user=app&pwd=hunter&x=1', 'user=app&pwd=<redacted>&x=1'],
    ['a short key', 'pwd=hunter', 'pwd=<redacted>'],
    ['a word of the API', 'password=default', 'password=<redacted>'],
    [
      'a list',
      'password=[hunter] token=["hunter"] Authorization:[Bearer hunter]',
      'password=<redacted> token=<redacted> Authorization:<redacted>',
    ],
    ['an address without a scheme', 'dial app:hunter@tcp(db:3306)/shop', 'dial <redacted>@tcp(db:3306)/shop'],
    ['a password with brackets', 'dsn=app:hun(t)er@x@tcp(db:3306)/shop', '<redacted>@tcp(db:3306)/shop'],
    ['a login of a host', 'cannot log in to admin:hunter@db.example', 'cannot log in to <redacted>@db.example'],
    ['a login in quotes', 'host "admin:hunter@db" is wrong', 'host <redacted> is wrong'],
    ['a login in a list', 'hosts [admin:hunter@db]', 'hosts <redacted>'],
    [
      'a login in a field of hosts',
      'spec.hosts[0]: Invalid value: "https://elastic:hunter@es:9200": should match x',
      'spec.hosts[0]: Invalid value: <redacted>: should match x',
    ],
    [
      'a login in a field of images',
      'spec.image: Invalid value: "admin:hunter@db": should match x',
      'spec.image: Invalid value: <redacted>: should match x',
    ],
    [
      'a digest in a field of images',
      'spec.image: Invalid value: "example:5000/app@sha256:abcdef": bad',
      'spec.image: Invalid value: "example:5000/app@sha256:abcdef": bad',
    ],
    ['no login', 'image quay.io/x/y:v1@sha256:abc', 'image quay.io/x/y:v1@sha256:abc'],
    ['digits', 'passcode=12345678', 'passcode=<redacted>'],
    ['a colon', 'password:letmein', 'password:<redacted>'],
    ['a plural', 'credentials: Sesame', 'credentials: <redacted>'],
    ['a blank in front of =', 'password = letmein', 'password = <redacted>'],
    ['a key in quotes', 'got "password": "letmein"', 'got "password": <redacted>'],
    ['a socket', 'dial unix:///var/run/x.sock failed', 'dial unix:///var/run/x.sock failed'],
    [
      'an image',
      'pulling "ghcr.io/external-secrets/external-secrets:v0.9.1"',
      'pulling "ghcr.io/external-secrets/external-secrets:v0.9.1"',
    ],
    ['a list', 'got [password: letmein]', 'got <redacted>'],
    ['a sentence about a key', 'password: must not be empty', 'password: must not be empty'],
    ['a token that is not found', 'token "hvs.CAESIJxQabc123456" not found', 'token "<redacted>" not found'],
    ['a token of words', 'token "letmein" not found', 'token "<redacted>" not found'],
    ['a token within a sentence', 'login: token "letmein" is not known', 'login: token <redacted> is not known'],
    ['a secret that is no name', 'secret "Hunter_Of" not found', 'secret "<redacted>" not found'],
    ['a Secret', 'secrets "db" not found', 'secrets "db" not found'],
    ['a Secret of a kubelet', 'MountVolume.SetUp failed: secret "db" not found', 'MountVolume.SetUp failed: secret "db" not found'],
    ['an object of a kind of others', 'tokens.management.cattle.io "web" not found', 'tokens.management.cattle.io "web" not found'],
  ])('KA31 %s', (_, said, shown) => {
    expect(safeText(said)).toBe(shown)
  })
})

test('KA31 a text about a Secret shows no quoted word that its caller does not know', () => {
  const said = 'data.password changed from "hunter" to "stone"'
  expect(safeText(said, { isSecret: true })).toBe('data.password changed from <redacted> to <redacted>')
  expect(safeText(said, { documents: [SECRET] })).toBe('data.password changed from <redacted> to <redacted>')
})

test('KA52 the order in which an API server names the members of a map does not show', () => {
  const causes = ['spec.b', 'spec.a', 'spec.b'].map((field) => ({ field, reason: 'FieldValueRequired', message: 'Required value' }))
  const said = (list: typeof causes) =>
    safeStatus({ message: 'Boat "b" is invalid: …', details: { name: 'b', kind: 'Boat', causes: list } })
  expect(said(causes)).toBe('Boat "b" is invalid: [spec.a: Required value, spec.b: Required value]')
  expect(said(causes.toReversed())).toBe(said(causes))
})

test.each([
  ['panic: index out of range [5] with length 3', 'panic: index out of range [5] with length 3'],
  ['login of canary-token-9f8e7d failed', 'login of <redacted> failed'],
  ['dsn postgres://app:canaryPass@db/shop, phrase correct canary battery staple', 'dsn <redacted>, phrase <redacted>'],
  ['redis://:other@cache:6379 refused', 'redis://<redacted>@cache:6379 refused'],
  [
    'Authorization: Bearer abc.def, password=xyz and "api_key": "xyz"',
    'Authorization: <redacted>, password=<redacted> and "api_key": <redacted>',
  ],
  [`key ${'a1b2'.repeat(12)} and eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc`, 'key <redacted> and <redacted>'],
  ['amqp://app:Ab3kd9Xq/xyz9@db:5432/app refused', 'amqp://<redacted>@db:5432/app refused'],
  ['postgres://app:Ab3kd9Xq/xyz9@db:5432/app refused', '<redacted>@db:5432/app refused'],
  ['get https://Ab3kd9XqSecretToken99: no such host', 'get https://<redacted>: no such host'],
  ['dial amqp://app:let/mein', 'dial amqp://<redacted>'],
  ['GET http://10.0.0.1:8080/healthz, http://[::1]:80/x.', 'GET http://10.0.0.1:8080/healthz, http://[::1]:80/x.'],
  ['etcd http://a:2379,http://b:2379: timeout', 'etcd http://a:2379,http://b:2379: timeout'],
  ['Id=sa;Password=letmeinplease;Encrypt=true', 'Id=sa;Password=<redacted>;Encrypt=true'],
  ['credentials: Sesame, auth=hunter dsn=hunter', 'credentials: <redacted>, auth=<redacted> dsn=<redacted>'],
])('KA53 the log line %s', (line, shown) => {
  expect(safeLog(line, { documents: [DEPLOYMENT] })).toBe(shown)
})

test.each([
  ['token "hunter" rejected', 'token <redacted> rejected'],
  ["login: token 'hunter of men' rejected", 'login: token <redacted> rejected'],
  ['token hunter2 rejected', 'token <redacted> rejected'],
  ['password hunter rejected', 'password <redacted> rejected'],
  ['password is hunter2', 'password is <redacted>'],
  ['api key is now hunter, was `stone`', 'api key is now <redacted>, was `stone`'],
  ['the new password: is hunter2', 'the new password: is <redacted>'],
  ['password => hunter2', 'password => <redacted>'],
  ['password for the user app is hunter2', 'password for the user app is <redacted>'],
  ['{"msg":"password is hunter2","n":1}', '{"msg":"password is <redacted>","n":1}'],
  ['{"msg":"token \\"hunter\\" rejected"}', '{"msg":"token <redacted> rejected"}'],
  ['{\\"password\\":\\"hunter\\"}', '{\\"password\\":<redacted>}'],
  ['invalid token, user "bob" is unknown', 'invalid token, user "bob" is unknown'],
  ['token is expired, password is too short', 'token is expired, password is too short'],
  ['auth middleware started, token bucket full', 'auth middleware started, token bucket full'],
  ['password authentication failed for user "app"', 'password authentication failed for user "app"'],
  ['secret "db" not found, secret shop/db not found', 'secret "db" not found, secret shop/db not found'],
])('KA57 the log line %s', (line, shown) => {
  expect(safeLog(line, { documents: [DEPLOYMENT] })).toBe(shown)
})

test.each([
  ['a value behind a verb', 'password is hunter2', 'password is <redacted>'],
  ['a word of a language behind a verb', 'the token was hunter, now', 'the token was <redacted>, now'],
  ['a quoted value behind a verb', 'password was "hunter"', 'password was <redacted>'],
  ['a bare value', 'invalid token hunter2', 'invalid token <redacted>'],
  ['a sentence about a token', 'token is expired', 'token is expired'],
  ['a sentence about a password', 'password is too short', 'password is too short'],
  ['the value that a policy refuses', 'value swordfish is not allowed', 'value <redacted> is not allowed'],
  ['the value behind a verb', 'the value is swordfish', 'the value is <redacted>'],
  ['several values', 'values hunter, trout are refused', 'values <redacted> are refused'],
  ['what was found in place of another', 'expected red, got hunter', 'expected red, got <redacted>'],
  ['a sentence about a value', 'value is required, got string in 3 of 4', 'value is required, got string in 3 of 4'],
])('KA57 %s in a message', (_, said, shown) => {
  expect(safeText(said)).toBe(shown)
})

test('KA54 an error about JSON quotes nothing of it', () => {
  const failed = (() => {
    try {
      return JSON.parse('{"a": hunter2}')
    } catch (error) {
      return describeError(new Error('cannot read the row', { cause: error }))
    }
  })()
  expect(failed).toBe('cannot read the row (JSON Parse error: Unexpected identifier)')
})

test('KA51 a document of a megabyte is searched in a moment', () => {
  const lines = Array.from({ length: 20_000 }, (_, i) => `setting_${i} = ${Bun.hash(String(i)).toString(36)} # ${i}`)
  const document = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data: { 'app.conf': lines.join('\n') } }
  const beganMs = performance.now()
  const said = safeText(`admission webhook "x" denied the request: line "${lines[17_000]}" is wrong`, { documents: [document] })
  expect(said).toBe('admission webhook "x" denied the request: line <redacted> is wrong')
  expect(performance.now() - beganMs).toBeLessThan(2_000)
})
