import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadKubeCredentials } from '../../agent/cluster/kubeconfig.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type LogFields, type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'

const folder = mkdtempSync(join(tmpdir(), 'skerry-kubeconfig-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const deps = { clock: systemClock, log: silentLogger }
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const config = (
  name: string,
  { cluster = '', user = '', current = 'site' }: { cluster?: string; user?: string; current?: string },
): string =>
  file(
    name,
    `apiVersion: v1
kind: Config
${current === '' ? '' : `current-context: ${current}`}
clusters: [{name: c, cluster: {server: 'https://kube.example:6443/', ${cluster}}}]
contexts: [{name: site, context: {cluster: c, user: u}}, {name: broken, context: {cluster: none, user: u}}]
users: [{name: u, user: {${user}}}]
`,
  )

describe('kubeconfig', () => {
  test('KA9 authority, certificate and key come from data or from files beside it, which are read again', async () => {
    file('ca.pem', 'CA 1')
    file('key.pem', 'KEY')
    const path = config('files', {
      cluster: 'certificate-authority: ca.pem',
      user: `client-certificate-data: ${base64('CERT')}, client-key: key.pem`,
    })
    const credentials = await loadKubeCredentials({ kubeconfig: path, env: {} }, deps)
    expect(credentials.server).toBe('https://kube.example:6443')
    expect(credentials.source).toBe(`context site of ${path}`)
    expect(await credentials.read()).toEqual({ tls: { ca: 'CA 1', cert: 'CERT', key: 'KEY', insecure: false }, authorization: null })
    file('ca.pem', 'CA 2')
    expect((await credentials.read()).tls.ca).toBe('CA 2')
  })

  test('KA9 a token, in the file or beside it, is read again', async () => {
    const path = config('token', { user: 'token: first' })
    const credentials = await loadKubeCredentials({ kubeconfig: path, env: {} }, deps)
    expect((await credentials.read()).authorization).toBe('Bearer first')
    config('token', { user: 'token: second' })
    expect((await credentials.read()).authorization).toBe('Bearer second')
  })

  test.each([
    ['token: t', { authorization: 'Bearer t' }],
    ['tokenFile: token.txt, token: old', { authorization: 'Bearer from a file' }],
    ['username: ann, password: secret', { authorization: `Basic ${base64('ann:secret')}` }],
    ['token: t, as: eve', { authorization: 'Bearer t', impersonateUser: 'eve' }],
  ])('KA9 who it is: %s', async (user, expected) => {
    file('token.txt', 'from a file\n')
    const path = config('who', { user, cluster: "tls-server-name: kube.local, proxy-url: 'http://proxy:1'" })
    const credentials = await loadKubeCredentials({ kubeconfig: path, env: {} }, deps)
    expect(credentials.proxyUrl).toBe('http://proxy:1')
    expect(await credentials.read()).toEqual({ tls: { serverName: 'kube.local', insecure: false }, ...expected })
  })

  test('KA9 a token that became a plugin, or a file that broke, is read for what it is now', async () => {
    const path = config('changing', { user: 'token: first' })
    const credentials = await loadKubeCredentials({ kubeconfig: path, env: {} }, deps)
    file('changing', '{')
    await expect(credentials.read()).rejects.toMatchObject({ code: 'kube_config', message: expect.stringContaining('cannot read') })
    const answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of a plugin"}}'
    config('changing', {
      user: `exec: {apiVersion: client.authentication.k8s.io/v1, command: echo, args: ['${answer}'], interactiveMode: Never}`,
    })
    expect((await credentials.read()).authorization).toBe('Bearer of a plugin')
  })

  test('KA9 a plugin runs once until its token is refused, is told its API version, and its failure is told', async () => {
    const plugin = file(
      'plugin.sh',
      `#!/bin/sh
echo run >> ${folder}/runs
[ -n "$KUBERNETES_EXEC_INFO" ] || exit 3
[ -e ${folder}/fail ] && { echo "login expired for token=s3cr3tToken" >&2; exit 1; }
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$(wc -l < ${folder}/runs | tr -d ' ')'"}}'
`,
    )
    chmodSync(plugin, 0o755)
    const exec = `exec: {apiVersion: client.authentication.k8s.io/v1, command: ${plugin}, interactiveMode: Never}`
    const credentials = await loadKubeCredentials({ kubeconfig: config('exec', { user: exec }), env: {} }, deps)
    expect((await credentials.read()).authorization).toBe('Bearer 1')
    expect((await credentials.read({ refused: true })).authorization).toBe('Bearer 2')
    file('fail', '')
    const failed = await credentials.read({ refused: true }).catch(describeError)
    expect(failed).toContain('login expired')
    expect(failed).not.toContain('s3cr3tToken')
  })

  test('KA54 an error of a broken file names the file and quotes nothing of it', async () => {
    const broken = file('broken', 'users:\n- name: a\n  user:\n    token: "s3cr3tToken\n   bad: [')
    const failed = await loadKubeCredentials({ kubeconfig: broken, env: {} }, deps).catch(describeError)
    expect(failed).toContain(`cannot read ${broken}`)
    expect(failed).not.toContain('s3cr3tToken')
  })

  test('KA12 only the kubeconfig can turn verification off, and then a warning says so', async () => {
    const warnings: Array<[string, LogFields | undefined]> = []
    const log: Logger = { ...silentLogger, warn: (message, fields) => warnings.push([message, fields]) }
    const path = config('insecure', { cluster: 'insecure-skip-tls-verify: true', user: 'token: t' })
    const credentials = await loadKubeCredentials({ kubeconfig: path, env: {} }, { clock: systemClock, log })
    expect((await credentials.read()).tls.insecure).toBe(true)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]?.[0]).toContain('insecure-skip-tls-verify')
  })

  test.each([
    [
      'a context that is not there',
      () => ({ kubeconfig: config('a', { user: 'token: t' }), context: 'prod' }),
      'has no context prod; it has site, broken',
    ],
    ['no current context', () => ({ kubeconfig: config('b', { user: 'token: t', current: '' }) }), 'set --context to one of: site, broken'],
    [
      'a cluster that is not there',
      () => ({ kubeconfig: config('c', {}), context: 'broken' }),
      'refers to a cluster that is not in the file',
    ],
    ['no file', () => ({ kubeconfig: join(folder, 'none') }), 'cannot read'],
    ['no YAML', () => ({ kubeconfig: file('d', '{') }), 'cannot read'],
    [
      'an authority that is missing',
      () => ({ kubeconfig: config('e', { cluster: 'certificate-authority: none.pem', user: 'token: t' }) }),
      'none.pem',
    ],
    ['nothing at all', () => ({}), '--kubeconfig is not set and this process does not run in'],
    [
      'a context without a file',
      () => ({ context: 'x', env: { KUBERNETES_SERVICE_HOST: 'h', KUBERNETES_SERVICE_PORT: '1' } }),
      '--context x needs --kubeconfig',
    ],
  ])('KA9 %s is told by name', async (_, options, message) => {
    const loading = loadKubeCredentials({ env: {}, ...options() }, deps)
    await expect(loading).rejects.toMatchObject({ code: 'kube_config', message: expect.stringContaining(message) })
  })

  test('KA9 in a pod: token and authority of the ServiceAccount, IPv6 in brackets', async () => {
    file('token', 'abc\n')
    file('ca.crt', 'CA')
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    const credentials = await loadKubeCredentials({ env, serviceAccountFolder: folder }, deps)
    expect(credentials.server).toBe('https://[fd00::1]:443')
    expect(await credentials.read()).toEqual({ tls: { ca: 'CA', insecure: false }, authorization: 'Bearer abc' })
    file('token', '')
    await expect(credentials.read()).rejects.toMatchObject({ code: 'kube_config', message: expect.stringContaining('token is empty') })
  })
})
