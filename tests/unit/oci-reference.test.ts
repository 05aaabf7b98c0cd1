// Texts of registries: what they say, and what is asked of them.
import { expect, test } from 'bun:test'
import { authorizationOf } from '../../server/sources/credentials.ts'
import {
  layerUse,
  nextPage,
  ociPlace,
  ociReference,
  readChallenge,
  tagOfVersion,
  versionOfTag,
} from '../../server/sources/oci/reference.ts'
import { naming } from '../support/naming.ts'

test.each([
  ['oci://ghcr.example/team/app', 'ghcr.example', 'team/app'],
  ['oci://127.0.0.1:5000/app', '127.0.0.1:5000', 'app'],
  ['oci://docker.io/team/app', 'registry-1.docker.io', 'team/app'],
  ['oci://docker.io/nginx', 'registry-1.docker.io', 'library/nginx'],
] as const)('SO17 %s is asked of %s as %s', (url, host, repository) => expect(ociPlace(url)).toEqual({ host, repository }))

test.each([
  ['oci://h.example/a/b:1.2.3', { url: 'oci://h.example/a/b', reference: '1.2.3' }],
  ['oci://h.example:5000/a/b:v1_x', { url: 'oci://h.example:5000/a/b', reference: 'v1_x' }],
  [`oci://h.example/a@sha256:${'0'.repeat(64)}`, { url: 'oci://h.example/a', reference: `sha256:${'0'.repeat(64)}` }],
  ['oci://h.example/a', null],
  ['oci://h.example/a/../b:1', null],
  ['oci://user@h.example/a:1', null],
  ['https://h.example/a:1', null],
] as const)('SO16 %s as the URL of an archive', (url, expected) => expect(ociReference(url)).toEqual(expected))

const bearer = (realm: string, service: string | null = null, scope: string | null = null) => ({
  scheme: 'bearer' as const,
  realm,
  service,
  scope,
})
test.each([
  ['Bearer realm="https://a/t",service="s",scope="repository:x:pull"', bearer('https://a/t', 's', 'repository:x:pull')],
  ['bearer Realm="https://a/t?x=1,2"', bearer('https://a/t?x=1,2')],
  ['Basic realm="r", Bearer realm="https://a/t", service="s"', bearer('https://a/t', 's')],
  ['Basic realm="r"', { scheme: 'basic' }],
  ['BASIC', { scheme: 'basic' }],
  ['Bearer service="s"', null],
  ['Negotiate', null],
  ['', null],
  [null, null],
] as const)('SO15 the challenge %p', (header, expected) => expect(readChallenge(header)).toEqual(expected))

test.each([
  ['</v2/a/tags/list?n=2&last=b>; rel="next"', '/v2/a/tags/list?n=2&last=b'],
  ['<https://h/x>; rel=next', 'https://h/x'],
  ['</prev>; rel="prev", </next?a=1,2>; rel="next"', '/next?a=1,2'],
  ['</prev>; rel="prev"', null],
  ['next', null],
  [null, null],
] as const)('SO18 the next page of %p', (header, expected) => expect(nextPage(header)).toBe(expected))

test('SO18 an underscore of a tag stands for the plus of a version', () => {
  expect([versionOfTag('1.2.3_build.5'), tagOfVersion('1.2.3+build.5')]).toEqual(['1.2.3+build.5', '1.2.3_build.5'])
})

const title = { 'org.opencontainers.image.title': 'a.yaml' }
test.each([
  ['application/vnd.cncf.helm.chart.content.v1.tar+gzip', {}, { kind: 'chart' }],
  ['application/vnd.cncf.helm.chart.content.v1.tar+gzip', title, { kind: 'chart' }],
  ['application/vnd.cncf.helm.chart.provenance.v1.prov', {}, { kind: 'nothing' }],
  ['application/vnd.oci.image.layer.v1.tar', {}, { kind: 'archive' }],
  ['application/vnd.oci.image.layer.v1.tar', title, { kind: 'file', name: 'a.yaml' }],
  ['text/yaml', title, { kind: 'file', name: 'a.yaml' }],
  ['text/yaml', {}, { kind: 'unknown' }],
  ['application/vnd.oci.image.layer.v1.tar+zstd', {}, { kind: 'unknown' }],
  ['application/x', { ...title, 'io.deis.oras.content.unpack': 'true' }, { kind: 'archive' }],
] as const)('SO17 a layer of the type %s with %p', (mediaType, annotations, expected) =>
  expect(layerUse({ mediaType, annotations })).toEqual(expected),
)

test.each([
  [{}, null],
  [{ caCert: 'x' }, null],
  [{ token: ' t\n' }, 'Bearer t'],
  [{ token: 't', username: 'a', password: 'b' }, `Basic ${btoa('a:b')}`],
  [{ token: 't\n', username: 'a\n' }, `Basic ${btoa('a:t')}`],
  [{ username: 'a', password: 'b\n' }, `Basic ${btoa('a:b')}`],
  [{ username: 'a', password: 'ß:ß' }, `Basic ${Buffer.from('a:ß:ß').toString('base64')}`],
] as Array<[Record<string, string>, string | null]>)('SO46 what is sent of %p', (secrets, expected) =>
  expect(authorizationOf(secrets, 'host')).toBe(expected),
)

test.each([
  [{ token: 'glpat-SECRET\nsecond line' }, ['token', 'line ends']],
  [{ token: 'sécret' }, ['token', 'line ends']],
  [{ username: 'a' }, ['username', 'no password']],
  [{ password: 'b' }, ['password', 'no username']],
  [{ username: 'a:b', password: 'c' }, ['username', 'colon']],
] as Array<[Record<string, string>, string[]]>)('SO46 what nobody could send is said: %p', (secrets, expected) => {
  try {
    authorizationOf(secrets, 'host')
    expect.unreachable()
  } catch (error) {
    expect(error).toMatchObject({ code: 'credential_missing', data: { detail: naming('host:', ...expected) } })
    expect(Bun.inspect(error)).not.toMatch(/SECRET|sécret|a:b/)
  }
})
