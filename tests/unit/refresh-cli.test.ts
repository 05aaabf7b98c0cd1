// `skerry refresh repository`, when sources are read, and how wide `get -o wide` is.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Column, renderTable, WIDE_COLUMNS } from '../../server/cli/columns.ts'
import type { RepositoryReadTimes } from '../../server/ingest/read-times.ts'
import { authorName } from '../../server/sources/git/text.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

const FETCHED = { fetchedMs: 1, tag: null, error: null }
let admin: TestAdmin
/** Read one after the other, the last one again and again. */
let looks: RepositoryReadTimes[]
beforeEach(async () => {
  looks = []
  admin = await createTestAdmin({ readTimesOf: () => (looks.length > 1 ? (looks.shift() ?? null) : (looks[0] ?? null)) })
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
  admin.asked.length = 0
})
afterEach(() => admin.store.close())
const cli = (argv: string, sleep?: () => Promise<void>) =>
  runTestCli(admin, argv.split(' '), sleep === undefined ? {} : { sleep: async () => void (await sleep()) })
const NOW = 1_000_000

test('CL20 refresh waits for a read that began after the request, and says what it found', async () => {
  await admin.store.setRepositoryState('default', 'apps', { ...FETCHED, commit: 'aaaaaaaaaaaaaaaa' })
  const before = { lastReadMs: NOW - 9_000, nextReadMs: NOW + 51_000 }
  looks = [
    before,
    { ...before, nextReadMs: NOW },
    { lastReadMs: NOW + 5, nextReadMs: NOW + 5 },
    { lastReadMs: NOW + 9, nextReadMs: NOW + 60_009 },
  ]
  let slept = 0
  const { code, out } = await cli('refresh repository apps', async () => {
    slept += 1
    await admin.store.setRepositoryState('default', 'apps', { ...FETCHED, commit: 'bbbbbbbbbbbbbbbb' })
  })
  expect([code, out, slept]).toEqual([0, 'repository/apps read at bbbbbbbbbbbb (was aaaaaaaaaaaa)\n', 2])
  expect(admin.asked).toEqual(['changed Repository default/apps'])
})

test('CL20 a read that fails, or does not end in time, is exit code 1; --no-wait asks and goes', async () => {
  const error = { code: 'git_unreachable', message: 'no route', problems: [], sinceMs: 1 }
  await admin.store.setRepositoryState('default', 'apps', { ...FETCHED, commit: null, error })
  looks = [{ lastReadMs: NOW + 1, nextReadMs: NOW + 60_000 }]
  expect(await cli('refresh repository apps')).toMatchObject({ code: 1, err: expect.stringContaining('repository apps: no route') })
  looks = [{ lastReadMs: NOW - 1, nextReadMs: NOW }]
  const late = await cli('refresh repository apps --timeout 2s', async () => {
    admin.clock.nowMs += 500
  })
  expect(late).toMatchObject({ code: 1, err: naming('2s') })
  expect((await cli('refresh repository apps --no-wait')).code).toBe(0)
  expect(await cli('refresh repository nobody')).toMatchObject({ code: 1 })
  expect((await cli('refresh service web')).code).toBe(2)
  expect((await cli('refresh repository apps --timeout soon')).code).toBe(2)
  expect((await admin.call('POST', '/api/v1/projects/default/repositories/nobody/refresh')).status).toBe(404)
  expect((await admin.call('POST', '/api/v1/projects/default/repositories/apps/refresh')).status).toBe(202)
})

test('CL21 describe service says when its repository was last read and is read next', async () => {
  looks = [{ lastReadMs: NOW - 12_000, nextReadMs: NOW + 48_000 }]
  expect((await cli('describe service web')).out).toMatch(/^Source read: +12s ago, failed; next in about 48s$/m)
})

test('RL8 describe and the API name the commit of a failed render and its author', async () => {
  await admin.store.setRepositoryState('default', 'apps', { ...FETCHED, commit: 'c0ffee0011aa22' })
  const id = { project: 'default', service: 'web' }
  const at = { commit: 'c0ffee0011aa22', author: 'Ana Example' }
  const error = { code: 'render_failed', message: '1 error in the manifests', problems: [], sinceMs: 1, at }
  await admin.store.setRenderState(id, { ...(await admin.store.renderState(id)), generation: 1, error })
  const { out } = await cli('describe service web')
  expect(out).toMatch(/^Failed at: +c0ffee0011aa22 by Ana Example$/m)
  expect(out).toEqual(naming('1 error', 'commit c0ffee0011aa by Ana Example', 'no revision'))
  expect(JSON.parse((await cli('get service web -o json')).out).status.failedAt).toEqual(at)
})

test.each([
  ['tree 1\nauthor Ana Example <ana@example.com> 1700000000 +0000\ncommitter x <y> 1 +0000\n\nauthor No One <n> 1 +0000\n', 'Ana Example'],
  ['tree 1\nauthor <ana@example.com> 1700000000 +0000\n\nm', 'ana@example.com'],
  ['tree 1\n\nauthor Ana <a> 1 +0000\n', null],
])('RL8 the author of %j is %s', (text, author) => expect(authorName(new TextEncoder().encode(text))).toBe(author))

interface Row {
  name: string
  long: string
  message: string
}
const columns: Column<Row>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'LABELS', value: ({ long }) => long, wide: true },
  { title: 'MESSAGE', value: ({ message }) => message, wide: true },
]

test.each<[string, Row, (line: string) => unknown, unknown]>([
  ['cut the widest', { name: 'web', long: 'a'.repeat(30), message: 'm'.repeat(400) }, (line) => Bun.stringWidth(line), WIDE_COLUMNS],
  ['keep a name', { name: 'n'.repeat(150), long: 'a'.repeat(30), message: 'm'.repeat(30) }, (line) => line.split('  ').map((cell) => cell.length), [150, 8, 12]],
  ['cut nothing that fits', { name: 'web', long: 'a=b', message: 'all is well' }, (line) => line, 'web    a=b      all is well'],
])('CL22 lines of -o wide %s', (_, row, read, expected) => {
  const table = renderTable(columns, [row], { wide: true, fit: WIDE_COLUMNS, headers: true, colours: false })
  expect(read(table.split('\n')[1] ?? '')).toEqual(expected)
}) // biome-ignore format: one line each
