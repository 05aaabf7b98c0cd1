// One file behind a URL as a source: what it asks for, what it keeps, and what it refuses.
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SINGLE_FILE, SOURCE_FILE_BYTES_MAX } from '../../server/sources/source.ts'
import { createFileSource } from '../../server/sources/stored/file-source.ts'
import { sha256Of } from '../../server/sources/stored/files.ts'
import { tempDir } from '../support/temp-dir.ts'

const URL = 'https://h.example/x.yaml?token=hunter2'

function world(secrets: Readonly<Record<string, string>> | null = null) {
  const dir = tempDir()
  const asked: Array<{ named: boolean; headers: Record<string, string> }> = []
  const state = { answer: () => new Response('a: 1', { headers: { etag: '"1"' } }) as Response }
  const fetcherOf = (named: boolean) => async (_: string, init?: { headers?: unknown }) => {
    asked.push({ named, headers: { ...(init?.headers as Record<string, string>) } })
    return state.answer()
  }
  const open = (url = URL) =>
    createFileSource({
      ...{ url, dir, fetcher: fetcherOf(false) as never, namedOnly: fetcherOf(true) as never },
      credential: { secretRef: secrets === null ? null : 'forge', read: async () => secrets ?? {} },
    })
  return { dir, asked, state, open }
}
const refusal = (asked: Promise<unknown>) => asked.then(() => null, (error: { code?: string; message?: string }) => [error.code, error.message?.includes('hunter2')]) // biome-ignore format: one answer

test('SO10 its revision is the digest of its content, which stays readable without a request', async () => {
  const { asked, state, open } = world()
  const revision = await open().fetch()
  expect(revision).toBe(sha256Of('a: 1'))
  state.answer = () => new Response('gone', { status: 500 })
  const source = open()
  expect(await source.has(revision)).toBe(true)
  const { tree } = await source.open(revision, { path: '.' })
  expect(new TextDecoder().decode((await tree.file(SINGLE_FILE))?.bytes)).toBe('a: 1')
  expect(asked).toHaveLength(1)
  expect(await refusal(source.head())).toEqual(['source_unreachable', false])
  expect([await source.has('other'), await source.has('0'.repeat(64))]).toEqual([false, false])
  expect(await refusal(source.open('0'.repeat(64), { path: '.' }))).toEqual(['source_unreachable', false])
})

test('a look without news is answered by 304; what the disk lost is asked for whole', async () => {
  const { dir, asked, state, open } = world()
  const revision = await open().fetch()
  state.answer = () => new Response(null, { status: 304 })
  expect([await open().head(), asked[1]?.headers['if-none-match']]).toEqual([revision, '"1"'])
  writeFileSync(join(dir, 'head.json'), readFileSync(join(dir, 'head.json'), 'utf8').slice(0, 20))
  state.answer = () => new Response('b: 2')
  expect([await open().head(), asked[2]?.headers['if-none-match']]).toEqual([sha256Of('b: 2'), undefined])
})

test('KU14 16 MiB, and no more', async () => {
  const { state, open } = world()
  const bytes = new Uint8Array(SOURCE_FILE_BYTES_MAX + 1)
  state.answer = () => new Response(bytes.subarray(1))
  expect(await open().fetch()).toBe(sha256Of(bytes.subarray(1)))
  state.answer = () => new Response(bytes)
  expect(await refusal(open().fetch())).toEqual(['source_refused', false])
})

test('SO25 SO5 a credential is sent, over plain http to named addresses only; a refusal names no secret', async () => {
  const { asked, state, open } = world({ token: 'secret' })
  await open().fetch()
  await open('http://h.example/x.yaml').fetch()
  expect(asked.map(({ named, headers }) => [named, headers['authorization']])).toEqual([
    [false, 'Bearer secret'],
    [true, 'Bearer secret'],
  ])
  state.answer = () => new Response('', { status: 401 })
  expect(await refusal(open().fetch())).toEqual(['credential_refused', false])
})
